# The reference of the web site: `awk -v out=DIR -f scripts/reference.awk llcl.h` writes a page for each chapter of llcl.h, with all
# declarations of the chapter. scripts/make-site calls it.
function flush_page() { if (page != "") close(page) }
/^\/\*$/ { in_heading = 1; heading = ""; next }
in_heading && /^ \*\// {
    in_heading = 0
    if (heading !~ /^([0-9]+\. |libllcl:)/) next
    flush_page()
    title = heading; sub(/\n.*/, "", title); sub(/^[^\n]*\n?/, "", heading)
    number = title ~ /^[0-9]/ ? title + 1 : 0
    if (number == 0) { heading = title "\n" heading; title = "Conventions" }
    # The heading continues in the next line.
    else while (title !~ /[.:]$/ && heading ~ /^[^\n]/) { rest = heading; sub(/\n.*/, "", rest); title = title rest; sub(/^[^\n]*\n?/, "", heading) }
    sub(/\.$/, "", title); gsub(/  +/, " ", title)
    name = sprintf("chapter%02d", number); page = out "/" name ".md"; names = names name "\n"
    printf "# %s\n\n%s\n", title, heading > page
    next
}
in_heading { sub(/^ \* ?/, ""); heading = heading $0 "\n"; next }
/^\/\*\*/ { in_doc = 1; doc = "" }
in_doc { line = $0; last = line ~ /\*\/ *$/; sub(/ ?\*\/ *$/, "", line); sub(/^\/\*\* ?/, "", line); sub(/^ \* ?/, "", line); doc = doc line "\n"; if (last) in_doc = 0; next }
page == "" || /^$/ || /^#(if|endif|include|ifndef)/ || /^extern|^\}$/ { next }
{
    text = $0; name = $2
    if (/^#define/) { sub(/\(.*/, "", name); while (text ~ /\\$/ && (getline line) > 0) text = text "\n" line }
    else if (/^typedef struct [a-z0-9_]+ \{/) { name = $3; while (text !~ /\n\}/ && (getline line) > 0) text = text "\n" line }
    else { while (text !~ /;$/ && (getline line) > 0) text = text "\n" line; match(text, /llcl_[a-z0-9_]+( \(|\)?\(|;)/); name = substr(text, RSTART, RLENGTH); sub(/[^a-z0-9_].*/, "", name) }
    printf "## %s\n\n```c\n%s\n```\n\n%s\n", name, text, doc > page
    doc = ""; items++
}
END {
    printf "# Reference\n\nAll of `llcl.h`, chapter by chapter. The manual pages say the same: `man llcl`, `man llcl_init`.\n\n```{toctree}\n:maxdepth: 1\n%s```\n", names > (out "/index.md")
    if (!items) { print "reference.awk: nothing found" > "/dev/stderr"; exit 1 }
}

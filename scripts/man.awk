# Manual pages from llcl.h: `awk -v out=DIR -v version=... -f scripts/man.awk llcl.h` writes DIR/man3/NAME.3 for each function and
# DIR/man7/llcl.7, the overview. scripts/make-man calls it.

# Escapes text for troff, so that no line is a request. `code`, LLCL_ names and llcl_ names become bold.
function troff(s,    t) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    t = ""
    while (match(s, /`[^`]*`/)) {
        t = t substr(s, 1, RSTART - 1) "\\fB" substr(s, RSTART + 1, RLENGTH - 2) "\\fP"
        s = substr(s, RSTART + RLENGTH)
    }
    s = t s
    return s ~ /^[.']/ ? "\\&" s : s
}
function verbatim(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s ~ /^[.']/ ? "\\&" s : s }

# Breaks text into lines of at most some width.
function fill(s,    n, w, i, line, result) {
    n = split(s, w, " "); line = result = ""
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line) + length(w[i]) > 100) { result = result guarded(line) "\n"; line = "" }
        line = line (line == "" ? "" : " ") w[i]
    }
    return result guarded(line) "\n"
}
function guarded(line) { return line ~ /^[.']/ ? "\\&" line : line }

# Writes the documentation of a function: description, parameters, statuses, threads and the rest.
function sections(doc,    text, result, at, rest, head) {
    text = ""
    # The statuses begin at the first sentence that begins with LLCL_OK or "Returns".
    at = match(doc, /(^|[.\001] ?)(LLCL_OK|Returns)/)
    head = at ? substr(doc, 1, at) : doc
    rest = at ? substr(doc, at + 1) : ""
    sub(/^[ \001]+/, "", rest)
    at = match(head, /(^|[.\001] ?)`[a-z_]+`((, | and )`[a-z_]+`)*(:| of each)/)
    result = ".SH DESCRIPTION\n" paragraphs(at ? substr(head, 1, at) : head)
    if (at) result = result ".SH PARAMETERS\n" parameters(substr(head, at + (substr(head, at, 1) != "`")))
    if (rest == "") return result
    at = match(rest, /[.\001] ?(From:|Threads:|Any thread|Any number of|No other thread|Threads of one rank|To be called|Helps with|It starts the|Waits for the first)/)
    result = result ".SH RETURN VALUE\n" answers(at ? substr(rest, 1, at) : rest)
    if (at) result = result ".SH NOTES\n" paragraphs(substr(rest, at + 1))
    return result
}
function paragraphs(s,    n, p, i, result) {
    n = split(s, p, "\001"); result = ""
    for (i = 1; i <= n; i++) if (p[i] ~ /[^ ]/) result = result (result == "" ? "" : ".PP\n") fill(troff(p[i]))
    return result
}
function parameters(s,    result, name, at) {
    gsub(/\001/, " ", s); sub(/^ +/, "", s); result = ""
    while (match(s, /^`[a-z_]+`((, | and )`[a-z_]+`)*:? */)) {
        name = substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1)
        sub(/:? *$/, "", name)
        at = match(s, /[.;] `[a-z_]+`((, | and )`[a-z_]+`)*:/)
        result = result ".TP\n" troff(name) "\n" fill(troff(ended(at ? substr(s, 1, at) : s)))
        s = at ? substr(s, at + 2) : ""
    }
    return result (s ~ /[^ ]/ ? ".PP\n" fill(troff(s)) : "")
}

# Writes the statuses with their meanings as a list, and the text before and after them.
function answers(s,    result, name, at) {
    if (!match(s, /(^|[;.] )LLCL_[A-Z_]+(,( or)? LLCL_[A-Z_]+| or LLCL_[A-Z_]+)*[:;]/)) return paragraphs(s)
    at = substr(s, RSTART, 1) == "L" ? RSTART : RSTART + 2
    result = at > 1 ? paragraphs(substr(s, 1, at - 1)) : ""
    s = substr(s, at); gsub(/\001/, " ", s)
    while (match(s, /^LLCL_[A-Z_]+(,( or)? LLCL_[A-Z_]+| or LLCL_[A-Z_]+)*[:;] */)) {
        name = substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1)
        at = name ~ /; *$/ ? 1 : match(s, /[;.] LLCL_[A-Z_]+(,( or)? LLCL_[A-Z_]+| or LLCL_[A-Z_]+)*:/)
        result = result ".TP\n.B \"" name_only(name) "\"\n" fill(troff(name ~ /; *$/ ? "Done." : ended(at ? substr(s, 1, at) : s)))
        s = name ~ /; *$/ ? s : at ? substr(s, at + 2) : ""
    }
    return result (s ~ /[^ ]/ ? ".PP\n" fill(troff(s)) : "")
}
function ended(s) { sub(/; *$/, ".", s); return s }
function name_only(s) { sub(/[:;] *$/, "", s); return s }

# The first sentence without its end, for NAME.
function brief(doc,    s, at) {
    s = doc; sub(/\001.*/, "", s)
    at = match(s, /[.:;] |\.$/); if (at) s = substr(s, 1, at - 1)
    gsub(/`/, "", s); gsub(/\\/, "", s); gsub(/-/, "\\-", s)
    return tolower(substr(s, 1, 1)) substr(s, 2)
}

function page(name, prototype, doc,    file, s, type, seen) {
    file = out "/man3/" name ".3"
    printf ".\\\" Generated from llcl.h.\n.TH %s 3 \"\" \"libllcl %s\" \"libllcl\"\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n", name, version, name, brief(doc) > file
    printf ".SH SYNOPSIS\n.nf\n.B #include <llcl.h>\n.PP\n%s.fi\n.PP\nLink with \\fI\\-lllcl\\fP.\n", bold(prototype) > file
    printf "%s", sections(doc) > file
    s = prototype
    while (match(s, /llcl_[a-z0-9_]+_t/)) {
        type = substr(s, RSTART, RLENGTH); s = substr(s, RSTART + RLENGTH)
        if (!(type in struct) || (type in seen)) continue
        seen[type] = 1
        printf ".SH %s\n.EX\n%s.EE\n", type, struct[type] > file
    }
    printf ".SH SEE ALSO\n.BR llcl (7)%s\n", others(name) > file
    close(file)
}
function bold(s,    n, l, i, result) {
    n = split(s, l, "\n"); result = ""
    for (i = 1; i <= n; i++) result = result ".B \"" verbatim(l[i]) "\"\n"
    return result
}
# The functions before and after in the same chapter.
function others(name,    i, n, l, result) {
    n = split(members[of[name]], l, " "); result = ""
    for (i = 1; i <= n && i <= 60; i++) if (l[i] != name) result = result ",\n.BR " l[i] " (3)"
    return result
}

# A comment documents the item that follows it.
/^\/\*\*/ { doc = ""; in_doc = 1 }
/^\/\*$/ { heading = ""; in_heading = 1; next }
in_heading && /^ \*\// { in_heading = 0; chapter_ends(); next }
in_heading { sub(/^ \* ?/, ""); heading = heading ($0 == "" ? "\001" : $0 ~ /^- / ? "\001" $0 : (heading == "" || heading ~ /\001$/ ? "" : " ") $0); sub(/  +/, " ", heading); next }
in_doc {
    line = $0; last = line ~ /\*\/ *$/
    sub(/ ?\*\/ *$/, "", line); sub(/^\/\*\* ?/, "", line); sub(/^ \* ?/, "", line)
    doc = doc (line == "" ? (doc == "" || last ? "" : "\001") : (doc == "" || doc ~ /\001$/ ? "" : " ") line)
    if (last) in_doc = 0
    next
}
/^typedef struct [a-z0-9_]+ \{/ { type = $3; text = $0 "\n"; while ((getline line) > 0) { text = text line "\n"; if (line ~ /^\}/) break }; n = split(text, l, "\n"); struct[type] = ""; for (i = 1; i < n; i++) struct[type] = struct[type] verbatim(l[i]) "\n"; next }
/^#define LLCL_(OK|DONE|RETRY_|ERR_)/ { value = $3; gsub(/[()]/, "", value); statuses = statuses ".TP\n.BR " $2 " \" (" verbatim(value) ")\"\n" fill(troff(doc)); next }
/^[a-z].*\(/ && !/^typedef/ && !/^extern/ {
    prototype = $0
    while (prototype !~ /;$/ && (getline line) > 0) prototype = prototype "\n" line
    match(prototype, /llcl_[a-z0-9_]+\(/); name = substr(prototype, RSTART, RLENGTH - 1)
    order[++functions] = name; prototypes[name] = prototype; docs[name] = doc; of[name] = chapter
    members[chapter] = members[chapter] " " name
}
function chapter_ends() {
    if (heading ~ /^[0-9]+\. /) { chapter = heading + 0; titles[chapter] = heading; chapters = chapter }
    else if (conventions == "") conventions = heading
}

END {
    for (i = 1; i <= functions; i++) page(order[i], prototypes[order[i]], docs[order[i]])
    file = out "/man7/llcl.7"
    printf ".\\\" Generated from llcl.h.\n.TH llcl 7 \"\" \"libllcl %s\" \"libllcl\"\n.nh\n.ad l\n.SH NAME\nllcl \\- a low\\-level communication library\n", version > file
    printf ".SH SYNOPSIS\n.nf\n.B #include <llcl.h>\n.PP\n.B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs llcl)\n.B llcl\\-run \\-n 4 ./a.out\n.fi\n.SH DESCRIPTION\n" > file
    n = split(conventions, p, "\001")
    for (i = 1; i <= n; i++) {
        if (p[i] !~ /[^ ]/) continue
        if (p[i] ~ /^- /) printf ".IP \\(bu 2\n%s", fill(troff(substr(p[i], 3))) > file
        else printf ".PP\n%s", fill(troff(p[i])) > file
    }
    printf ".SH STATUSES\n%s", statuses > file
    printf ".SH FUNCTIONS\n" > file
    for (c = 0; c <= chapters; c++) {
        if (members[c] == "") continue
        title = titles[c]; sub(/\001.*/, "", title)
        printf ".SS %s\n", troff(title) > file
        rest = titles[c]
        if (sub(/^[^\001]*\001+/, "", rest)) printf "%s", paragraphs(rest) > file
        n = split(members[c], l, " ")
        for (i = 1; i <= n; i++) printf ".TP\n.BR %s (3)\n%s", l[i], fill(troff_brief(docs[l[i]])) > file
    }
    printf ".SH SEE ALSO\n.BR llcl\\-run (1),\n.BR llcl\\-info (1)\n" > file
    if (!functions) { print "man.awk: no functions found" > "/dev/stderr"; exit 1 }
}
function troff_brief(doc,    s) { s = brief(doc); return toupper(substr(s, 1, 1)) substr(s, 2) "." }

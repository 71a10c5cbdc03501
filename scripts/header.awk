# Puts cbindgen's output for one chapter into the form that a C programmer reads:
# constants carry their type and negative ones parentheses, types go by their typedef names,
# Rust's "# Safety" sections go, short comments take one line.
FILENAME == ARGV[1] { type[$1] = $2; next }

/^\/\*\*$/ || /^[ ]+\/\*\*$/ { indent = $0; sub(/\/\*\*$/, "", indent); count = 0; skip = 0; comment = 1; next }
comment && /^ *\*\/$/ { flush_comment(); comment = 0; next }
comment {
    line = $0; sub(/^ *\* ?/, "", line)
    if (line ~ /^# /) { skip = (line == "# Safety"); sub(/^# /, "", line); line = line ":" ; heading = 1 } else heading = 0
    if (!skip) { text[++count] = line }
    next
}

/^#define LLCL_/ {
    name = $2
    value = $0; sub(/^#define [A-Z0-9_]+ /, "", value)
    if (type[name] == "u64") {
        sub(/ull$/, "", value)
        if (value ~ /^\(1 << /) sub(/^\(1 /, "((uint64_t)1 ", value)
        else value = "UINT64_C(" value ")"
    } else if (type[name] ~ /^u/) {
        if (value ~ /^[0-9]+$/) value = value "u"; else sub(/^\(1 /, "(1u ", value)
    }
    if (value ~ /^-/) value = "(" value ")"
    print "#define " name " " value
    next
}

{
    if ($0 !~ /^typedef struct/) gsub(/struct llcl_/, "llcl_")
    if (/^$/) { if (blank) next; blank = 1 } else blank = 0
    print
}

function flush_comment(   i) {
    while (count && text[count] == "") count--
    blank = 0
    if (count == 0) return
    if (count == 1 && length(indent text[1]) < 90) { print indent "/** " text[1] " */"; return }
    print indent "/**"
    for (i = 1; i <= count; i++) print indent (text[i] == "" ? " *" : " * " text[i])
    print indent " */"
}

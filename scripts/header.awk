# Rewrites cbindgen's output for one chapter for C programmers: constants get their type, negative ones parentheses;
# types are named by their typedefs; Rust's "# Safety" sections are removed; short comments take one line; each struct
# is followed by its initialiser.
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

/^typedef struct .*\{$/ { struct = $3; values = ""; sized = 0; next }
struct && /^\} / { print_initialiser(struct, values, sized); struct = ""; next }
struct && /;$/ { values = values (values == "" ? "" : ", ") value_of($0) }

# The initial value of a member. Initialisers list all members in order, because that is the only form that compilers of
# both C99 and C++11 accept without a warning.
function value_of(member,   type) {
    if (member ~ / struct_size;$/) { sized = 1; return "sizeof(" struct ")" }
    if (member ~ /\[/) return "{0}"
    type = member; sub(/^ +(const )?/, "", type); sub(/ .*/, "", type)
    if (member ~ /\*/ || type ~ /_fn$/) return "NULL"
    if (type ~ /^llcl_.*_t$/ && type != "llcl_status_t") return initialiser(type)
    return "0"
}

function initialiser(type) { sub(/_t$/, "", type); return toupper(type) "_INIT" }

function print_initialiser(type, values, sized,   line, n, i, parts) {
    print "\n/** " (sized ? "Its size, and else zeroes" : "All zeroes") ": `" type " it = " initialiser(type) ";`. */"
    line = "#define " initialiser(type) " {"
    n = split(values, parts, ", ")
    for (i = 1; i <= n; i++) {
        if (length(line parts[i]) > 90) { print line " \\"; line = "   " }
        line = line (line ~ /\{$/ ? "" : " ") parts[i] (i < n ? "," : "}")
    }
    print line
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

# Reads a header without comments (cc -fpreprocessed -dD -E -P). Fails if a name is a keyword of UPC, which parses the header
# like C, or if two names differ only in case, which are one name in Fortran. UPC 1.3 has the keywords MYTHREAD, THREADS, relaxed,
# shared, strict and words that begin with upc_; its headers and its predefined macros (UPC_MAX_BLOCK_SIZE, __UPC__,
# __UPC_VERSION__, __UPC_DYNAMIC_THREADS__ ...) use names with that beginning, in either case. The same words without it are
# refused as well.
BEGIN {
    split("shared relaxed strict forall barrier fence notify wait iteration blocksizeof elemsizeof localsizeof MYTHREAD THREADS",
        list, " ")
    for (i in list) keyword[list[i]] = 1
}
{
    line = $0
    gsub(/"[^"]*"/, "", line)
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
        see(substr(line, RSTART, RLENGTH))
        line = substr(line, RSTART + RLENGTH)
    }
}
function see(name,   folded) {
    names++
    if ((name in keyword || name ~ /^(__)?(upc|UPC)_/) && !(name in told)) complain("the name " name " is a keyword of UPC")
    folded = tolower(name)
    if (folded in first && first[folded] != name && !(name in told)) complain("the names " first[folded] " and " name " differ in case only")
    told[name] = 1
    if (!(folded in first)) first[folded] = name
}
function complain(what) { print "check-names: " what > "/dev/stderr"; bad = 1 }
END {
    if (names == 0) complain("nothing found to check")
    exit bad
}

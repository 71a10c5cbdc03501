# Reads a header without comments (cc -fpreprocessed -dD -E -P). Fails if a name is a keyword of UPC, which parses the header
# like C, or if two names differ only in case, which are one name in Fortran.
BEGIN {
    split("shared relaxed strict forall barrier fence notify wait iteration blocksizeof elemsizeof localsizeof MYTHREAD THREADS " \
        "upc_forall upc_barrier upc_fence upc_notify upc_wait upc_blocksizeof upc_elemsizeof upc_localsizeof", list, " ")
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
    if (name in keyword && !(name in told)) complain("the name " name " is a keyword of UPC")
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

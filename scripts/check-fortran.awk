# Brings declarations of C functions into one form, a line each: "NAME RESULT (TYPE PARAMETER, ...)". `from` is their origin:
# "header", or "fortran" for those that gfortran -fc-prototypes makes of the module's interfaces. Number types are named by their
# size, and pointers to bytes have one name. A handle is a pointer to an opaque struct in C, and a type of its own in Fortran.
from == "header" && /^typedef struct [a-z0-9_]+ [a-z0-9_]+;/ { opaque[$3] = 1 }
# The types of callbacks, as functions.
from == "header" && /^typedef .*\(\*llcl_[a-z0-9_]+\)/ { sub(/^typedef /, ""); sub(/\(\*/, ""); sub(/\)\(/, "(") }
/^[a-z].*llcl_[a-z0-9_]+ *\(/ && !/^typedef/ {
    text = $0
    while (text !~ /;$/ && (getline line) > 0) text = text " " line
    gsub(/ *\/\*[^*]*\*\//, "", text); gsub(/ +,/, ",", text); gsub(/ +\)/, ")", text)
    name = text; sub(/ *\(.*/, "", name); result = name; sub(/.*[ *]/, "", name); sub(/[a-z0-9_]+$/, "", result)
    list = text; sub(/^[^(]*\(/, "", list); sub(/\);$/, "", list)
    gsub(/\(\*/, "fn ", list); gsub(/\)\(\)/, "", list)
    n = list == "void" || list == "" ? 0 : split(list, part, ",")
    line = name " " type_of(result) " ("
    for (i = 1; i <= n; i++) {
        p = part[i]; sub(/^ +/, "", p); word = p; sub(/.*[ *]/, "", word); sub(/[A-Za-z0-9_]+$/, "", p)
        line = line (i > 1 ? ", " : "") type_of(p) " " word
    }
    print line ")"
}
function type_of(type,   stars, constant) {
    gsub(/^ +| +$/, "", type)
    constant = sub(/^const /, "", type)
    stars = gsub(/\*/, "", type); gsub(/ +$/, "", type)
    if (from == "header" && stars > 0 && (type in opaque)) stars--
    # gfortran also writes only one star for a c_ptr that it passes by reference.
    if (type ~ /^(void|char)$/ && stars > 0) return "pointer"
    if (type ~ / fn$/ || type ~ /_fn$/) return "function"
    if (type ~ /^(u?int16_t|short)$/) type = "16"
    else if (type ~ /^(u?int32_t|llcl_status_t|int)$/) type = "32"
    else if (type ~ /^(u?int64_t|size_t|long)$/) type = "64"
    else if (constant && stars > 0) type = "const " type
    return type substr("**", 1, stars)
}

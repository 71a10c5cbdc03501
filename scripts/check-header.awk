# Checks that every constant, type, struct field and function of the header has a comment of its own, and that a function's
# comment names each parameter and each status, says which threads may call it and where the design comes from; that every struct has an initialiser; and
# that no comment uses an inner term of the library.
function complain(what) { print "check-header: " what > "/dev/stderr"; bad = 1 }

tolower($0) ~ /(^|[^a-z])(lanes?|doorbells?|requesters?.role|completers?|executors?)([^a-z]|$)/ { complain("line " NR " uses an inner term: " $0) }
/^ *\/\*\*/ { doc = $0; inside = ($0 !~ /\*\//); fresh = 1; next }
inside { doc = doc "\n" $0; if ($0 ~ /\*\//) inside = 0; next }

/^#define LLCL_H$/ { next }
/^#define LLCL_[A-Z_]*_INIT / { initialiser[$2] = 1 }
/^#define / { if (!fresh) complain("constant " $2 " has no documentation"); items++ }
/^    .*\}$/ && !struct { next } # the rest of an initialiser
/^    .*\\$/ && !struct { next }
/^typedef struct .*\{/ { if (!fresh) complain("struct " $3 " has no documentation"); items++; struct = $3; structs[$3] = 1; fresh = 0; next }
/^typedef / { name = $0; sub(/;.*/, "", name); if (!fresh) complain("type \"" name "\" has no documentation"); items++ }
struct && /^\}/ { struct = ""; next }
struct && /^ / { if (!fresh) complain("field \"" $0 "\" of " struct " has no documentation"); items++ }

/^[a-z].*llcl_[a-z0-9_]+\(/ && !/^typedef/ { declaration = ""; open = 1; function_doc = fresh ? doc : "" }
open {
    declaration = declaration " " $0
    if ($0 ~ /;$/) { open = 0; check_function(declaration, function_doc) }
}
/^[^ ]/ || struct { fresh = 0 }

function check_function(text, comment,   name, list, n, i, parameter, parts) {
    items++; functions++
    name = text; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
    if (comment == "") { complain("function " name " has no documentation"); return }
    list = text; sub(/^[^(]*\(/, "", list); sub(/\);.*/, "", list)
    n = split(list, parts, ",")
    for (i = 1; i <= n; i++) {
        parameter = parts[i]; sub(/.*[ *]/, "", parameter)
        if (parameter == "void" || parameter == "") continue
        if (index(comment, "`" parameter "`") == 0) complain(name ": the documentation does not name parameter `" parameter "`")
    }
    if (text ~ /^ *llcl_status_t /  && comment !~ /LLCL_(OK|RETRY|ERR)/) complain(name ": the documentation names no status")
    if (comment !~ /From:|This library's own/) complain(name ": the documentation does not say where the design comes from")
    if (comment !~ /[Tt]hread/) complain(name ": the documentation says nothing about threads")
}
function initialiser_of(struct_name) {
    sub(/_t$/, "_INIT", struct_name)
    return toupper(struct_name)
}
END {
    for (struct in structs) if (!(initialiser_of(struct) in initialiser)) complain("struct " struct " has no " initialiser_of(struct))
    if (!bad && items == 0) complain("nothing found to check")
    if (!bad) print "check-header: " items " items documented, " functions " of them functions"
    exit bad
}

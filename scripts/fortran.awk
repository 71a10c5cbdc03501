# Reads llcl.h as cbindgen and scripts/header.awk lay it out, and writes the generated part of the Fortran module
# into the folder `out`: constants.f90, types.f90, and for each group of chapters c_GROUP.f90 (the functions as C has
# them) and calls_GROUP.f90 (subroutines of the same names, whose `status` is optional). A
# declaration that it does not understand is an error.
# Variables: out (folder), sizes (file of lines "STRUCT BYTES"), version.
BEGIN {
    while ((getline line < sizes) > 0) { split(line, part, " "); bytes[part[1]] = part[2] }
    # Chapters by their numbers in the header; a chapter that is not named here stops the generator.
    group_of(0, 5, "life"); group_of(6, 7, "rma"); group_of(8, 10, "words"); group_of(11, 12, "am"); group_of(13, 14, "plans")
    group_of(15, 15, "inits"); group_of(16, 17, "colls"); group[20] = "colls"; group[18] = "rma"; group[19] = "life"
    # Parameters that are arrays, and those that may be NULL (absent in Fortran).
    array["ranks"] = array["peers"] = array["remotes"] = array["words"] = 1
    optional["llcl_init config"] = optional["llcl_context_duplicate config"] = optional["llcl_connect peers"] = optional["llcl_am_poll handled"] = 1
    optional["llcl_wait_any words"] = optional["llcl_wait_any which"] = optional["llcl_wait_fd words"] = 1
    # Functions whose status is their result, also "try again": status is not optional.
    asking["llcl_coll_test"] = asking["llcl_peer_alive"] = 1
    plain["uint16_t"] = plain["int16_t"] = "integer(c_int16_t)"
    plain["uint32_t"] = plain["int32_t"] = plain["llcl_status_t"] = "integer(c_int32_t)"
    plain["uint64_t"] = plain["int64_t"] = "integer(c_int64_t)"
    plain["size_t"] = "integer(c_size_t)"
    indent = "  "
}
function group_of(from, to, name,   i) { for (i = from; i <= to; i++) group[i] = name; order[++groups] = name }
function fail(what) { print "fortran.awk: " FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }

# Skips comments, except the numbers of chapters.
/^\/\*$/ { block = 1 }
block && /^ \* [0-9]+\. / { chapter = $2 + 0 }
/\/\*/ { comment = 1 }
comment { if ($0 ~ /\*\//) comment = block = 0; next }
/^$/ || /^#(ifndef|endif|include|ifdef)/ || /^extern "C"/ || /^}$/ { next }

# Constants. Initialisers and macros with parameters are for C only.
/^#define / {
    name = $2; value = $0; sub(/^#define [A-Z0-9_]+ ?/, "", value)
    if (value == "" || name ~ /\(/ || name ~ /_INIT$/) { while ($0 ~ /\\$/) getline; next }
    constant(name, value); next
}
function constant(name, value,   kind) {
    kind = "c_int32_t"
    if (value ~ /^\(\(uint64_t\)1 << [0-9]+\)$/) { kind = "c_int64_t"; gsub(/.*<< |\)/, "", value); value = "ibset(0_c_int64_t, " value ")" }
    else if (value ~ /^UINT64_C\([0-9]+\)$/) { kind = "c_int64_t"; gsub(/[^0-9]/, "", value); sub(/^64/, "", value); value = value "_c_int64_t" }
    else if (value == "4294967295u") value = "not(0_c_int32_t)"
    else if (value ~ /^\(-[0-9]+\)$/) { gsub(/[()]/, "", value) }
    else if (value ~ /^[0-9]+u?$/) sub(/u/, "", value)
    else fail("constant " name " has the value " value)
    constants = constants indent "integer(" kind "), parameter :: " name " = " value "\n"
}

# Types.
/^typedef struct [a-z0-9_]+ [a-z0-9_]+;$/ {
    name = $4; sub(/;/, "", name); handle[name] = 1
    types = types "\n" indent "type, bind(c) :: " name "\n" indent "  type(c_ptr) :: handle = c_null_ptr\n" indent "end type\n"
    next
}
/^typedef struct .*\{$/ { struct = $3; known[struct] = 1; types = types "\n" indent "type, bind(c) :: " struct "\n"; next }
struct && /^\} / { types = types indent "end type\n"; struct = ""; next }
struct {
    if (!match($0, /^    [^;]*;$/)) fail("member " $0)
    member = $0; gsub(/^ +|;$/, "", member); types = types indent "  " component(member) "\n"; next
}
/^typedef .*\(\*llcl_[a-z0-9_]+\)\(/ { collect("callback"); next }
/^typedef int32_t llcl_status_t;$/ { next }
/^(const )?[a-z0-9_]+ .*llcl_[a-z0-9_]+\(/ { collect("function"); next }
{ fail("not understood: " $0) }

function component(text,   name, type, length_) {
    name = text; sub(/.*[ *]/, "", name); type = text; sub(/[a-z0-9_]+(\[[0-9]+\])?$/, "", type)
    gsub(/const |^ +| +$/, "", type)
    length_ = ""
    if (match(name, /\[[0-9]+\]$/)) { length_ = "(" substr(name, RSTART + 1, RLENGTH - 2) ")"; sub(/\[.*/, "", name) }
    if (type ~ /_fn$/) return "type(c_funptr) :: " name " = c_null_funptr"
    if (type ~ /^llcl_[a-z0-9_]+ \*$/ && (substr(type, 1, length(type) - 2) in handle)) return "type(" substr(type, 1, length(type) - 2) ") :: " name
    if (type ~ /\*$/) return "type(c_ptr) :: " name " = c_null_ptr"
    if (type in known) return "type(" type ") :: " name
    if (!(type in plain)) fail("member " text)
    return plain[type] " :: " name length_ " = " (name == "struct_size" ? bytes[struct] + 0 : "0")
}

# Reads a declaration to its end, and takes it apart: result, name, parameters.
function collect(kind,   text) {
    text = $0
    while (text !~ /;$/) { if ((getline line) <= 0) fail("a declaration without an end"); sub(/^ +/, " ", line); text = text line }
    list = text; if (kind == "callback") sub(/^[^(]*\([^(]*\(/, "", list); else sub(/^[^(]*\(/, "", list)
    sub(/\);$/, "", list)
    head = text; if (kind == "callback") sub(/\)\(.*/, "", head); else sub(/\(.*/, "", head)
    name = head; sub(/.*[ *]/, "", name); returns = head; sub(/[a-z0-9_]+$/, "", returns); gsub(/typedef |\(\*/, "", returns); sub(/ +$/, "", returns)
    n = list == "void" ? 0 : split(list, parameter, ",")
    names = ""
    for (i = 1; i <= n; i++) {
        gsub(/^ +| +$/, "", parameter[i]); p = parameter[i]; sub(/.*[ *]/, "", p); word[i] = p
        type = parameter[i]; sub(/[a-z0-9_]+$/, "", type); gsub(/ +$/, "", type); of[i] = type
        names = names (i > 1 ? ", " : "") p
    }
    if (kind == "callback") callback(); else emit()
}

# A parameter in the interface of the C function: its C `type`, `by` value or reference, its attributes.
function dummy(type, p, function_, raw,   constant_, base, attributes) {
    constant_ = type ~ /^const /; base = type; sub(/^const /, "", base)
    by = raw ? "value" : "intent(in)"
    # Always by value: gfortran 12 puts the address of a procedure that it passes by reference into read-only memory.
    if (base ~ /_fn$/) return "type(c_funptr), value :: " p
    if (base in plain) return plain[base] ", " by " :: " p
    if (base in known) return "type(" base "), " by " :: " p
    if (base ~ / \*$/ && (substr(base, 1, length(base) - 2) in handle)) return "type(" substr(base, 1, length(base) - 2) "), " by " :: " p
    attributes = (function_ " " p in optional) ? ", optional :: " p : " :: " p
    if (p in array) attributes = attributes "(*)"
    if (base ~ / \*\*$/ && (substr(base, 1, length(base) - 3) in handle)) return "type(" substr(base, 1, length(base) - 3) "), intent(out)" attributes
    if (base == "void **") return "type(c_ptr), intent(out)" attributes
    if (base == "void *" || base == "char *") return "type(c_ptr), value :: " p
    if (base !~ / \*$/) fail(function_ ": parameter " p " of type " type)
    sub(/ \*$/, "", base)
    if (base in known) return "type(" base "), intent(" (constant_ ? "in" : "inout") ")" attributes
    # A number by reference is a word that other threads or ranks may change during the call or after it.
    if (base in plain) return plain[base] ", intent(" ((p in array) ? "in" : p == "handled" ? "out" : "inout") ")" (base == "uint64_t" ? ", asynchronous" : "") attributes
    fail(function_ ": parameter " p " of type " type)
}

function callback(   i, what) {
    if (returns != "void" && !(returns in plain)) fail(name " returns " returns)
    what = returns == "void" ? "subroutine" : "function"
    shapes = shapes (shapes == "" ? "" : ", ") name
    callbacks = callbacks "\n    " what " " name "(" names ") bind(c)" (returns == "void" ? "" : " result(answer)") "\n      import\n"
    for (i = 1; i <= n; i++) callbacks = callbacks "      " dummy(of[i], word[i], name, 1) "\n"
    if (returns != "void") callbacks = callbacks "      " plain[returns] " :: answer\n"
    callbacks = callbacks "    end " what "\n"
}

# Writes the function as it is in C, and the subroutine with an optional status.
function emit(   i, answer, g, short, required) {
    if (!(chapter in group)) fail("chapter " chapter " belongs to no group")
    g = group[chapter]; functions++
    if (returns == "void") answer = ""
    else if (returns in plain) answer = plain[returns]
    else if (returns in known) answer = "type(" returns ")"
    else if (returns ~ / \*$/ && (substr(returns, 1, length(returns) - 2) in handle)) answer = "type(" substr(returns, 1, length(returns) - 2) ")"
    else if (returns ~ /^(const )?(void|char) \*$/) answer = "type(c_ptr)"
    else fail(name " returns " returns)
    interfaces[g] = interfaces[g] "\n" broken("    " (answer == "" ? "subroutine " : "function ") name "(" names ") bind(c)" (answer == "" ? "" : " result(answer)")) "      import\n"
    for (i = 1; i <= n; i++) interfaces[g] = interfaces[g] "      " dummy(of[i], word[i], name, 1) "\n"
    if (answer != "") interfaces[g] = interfaces[g] "      " answer " :: answer\n"
    interfaces[g] = interfaces[g] "    end " (answer == "" ? "subroutine" : "function") "\n"
    # llcl.f90 turns C strings into characters.
    if (returns != "llcl_status_t") { if (returns != "const char *") others[g] = others[g] (others[g] == "" ? "" : ", ") name; return }

    short = substr(name, 6); required = name ~ /^llcl_try_/ || name in asking
    renames[g] = renames[g] (renames[g] == "" ? "" : ", ") "c_" short " => " name
    generics[g] = generics[g] "  public :: " name "\n  interface " name "; procedure call_" short "; end interface\n"
    bodies[g] = bodies[g] "\n" broken("  subroutine call_" short "(" names (n ? ", " : "") "status)")
    for (i = 1; i <= n; i++) bodies[g] = bodies[g] "    " dummy(of[i], word[i], name, 0) "\n"
    bodies[g] = bodies[g] "    integer(c_int32_t), intent(out)" (required ? "" : ", optional") " :: status\n"
    bodies[g] = bodies[g] broken("    call finish('" name "'//c_null_char, c_" short "(" names "), status)")
    bodies[g] = bodies[g] "  end subroutine\n"
}

# Breaks lines after commas, so that none has more than 100 columns.
function broken(text,   at, result, margin) {
    match(text, /^ */); margin = substr(text, 1, RLENGTH) "    "
    while (length(text) > 100) {
        for (at = 98; at > 20 && substr(text, at, 2) != ", "; at--);
        if (at == 20) fail("cannot break " text)
        result = result substr(text, 1, at) " &\n"; text = margin substr(text, at + 2)
    }
    return result text "\n"
}

function top(file, what) {
    printf "! %s\n! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.\n", what > file
    print "! SPDX-License-Identifier: MIT OR Apache-2.0" > file
}
function module(file, name, uses) { printf "module %s\n%s  implicit none\n", name, broken("  use, intrinsic :: iso_c_binding") uses > file }

END {
    if (failed) exit 1
    if (!functions) { print "fortran.awk: no function found" > "/dev/stderr"; exit 1 }
    file = out "/constants.f90"; top(file, "The constants of llcl.h, under their names."); module(file, "llcl_constants", "")
    printf "  private :: c_int32_t, c_int64_t\n\n%send module llcl_constants\n", constants > file
    close(file)

    file = out "/types.f90"; top(file, "The structs of llcl.h as types, with the initial values of the LLCL_..._INIT macros; the handles\n! as types with one pointer; the interfaces of callbacks.")
    module(file, "llcl_types", "")
    printf "  private\n" > file
    for (name in handle) all[++count] = name
    for (name in known) all[++count] = name
    sort(all, count)
    line = "  public :: "; for (i = 1; i <= count; i++) line = line all[i] (i < count ? ", " : "")
    printf "%s", broken(line) > file
    printf "%s%s\n  abstract interface%s  end interface\nend module llcl_types\n", broken("  public :: " shapes), types, callbacks > file
    close(file)

    file = out "/c.f90"; top(file, "All functions of llcl.h as C has them, with constants and types.")
    print "module llcl_c\n  use llcl_constants\n  use llcl_types" > file
    for (j = 1; j <= groups; j++) print "  use llcl_c_" order[j] > file
    print "end module llcl_c" > file
    close(file)
    file = out "/functions.f90"; top(file, "The functions of llcl.h that return neither a status nor a text.")
    print "module llcl_functions" > file
    for (j = 1; j <= groups; j++) if (others[order[j]] != "") printf "%s", broken("  use llcl_c_" order[j] ", only: " others[order[j]]) > file
    print "end module llcl_functions" > file
    close(file)

    for (j = 1; j <= groups; j++) {
        g = order[j]
        file = out "/c_" g ".f90"; top(file, "Functions of llcl.h as C has them.")
        module(file, "llcl_c_" g, "  use llcl_types\n")
        printf "\n  interface%s  end interface\nend module llcl_c_%s\n", interfaces[g], g > file
        close(file)
        file = out "/calls_" g ".f90"; top(file, "Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the\n! caller may leave it out.")
        module(file, "llcl_calls_" g, "  use llcl_types\n" broken("  use llcl_c_" g ", only: " renames[g]) "  use llcl_finish, only: finish\n")
        printf "  private\n%s\ncontains\n%send module llcl_calls_%s\n", generics[g], bodies[g], g > file
        close(file)
    }
}
function sort(list, n,   i, j, x) { for (i = 2; i <= n; i++) { x = list[i]; for (j = i - 1; j > 0 && list[j] > x; j--) list[j + 1] = list[j]; list[j + 1] = x } }

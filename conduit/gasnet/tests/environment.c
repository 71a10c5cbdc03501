/* Do the tools read numbers from text and from the environment, in a process that uses nothing else
 * of GASNet? With an argument: does this text end the process, since it is no number? */
#undef GASNET_SEQ
#undef GASNET_PARSYNC
#undef GASNET_PAR
#include <gasnet_tools.h>

#define EQUAL(a, b)                                                                        \
    do {                                                                                   \
        double left = (double)(a), right = (double)(b);                                    \
        if (left != right) {                                                               \
            printf("environment:%d: %s is %g, not %g\n", __LINE__, #a, left, right);       \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static double real(const char *text) {
    gasnett_setenv("LLCL_TEST_REAL", text);
    return gasnett_getenv_dbl_withdefault("LLCL_TEST_REAL", 7);
}

static void numbers(void) {
    char text[40];
    EQUAL(gasnett_parse_int("-12 ", 0), -12);
    EQUAL(gasnett_parse_int("010", 0), 10);
    EQUAL(gasnett_parse_int("-0x10", 0), -16);
    EQUAL(gasnett_parse_int("12", 1024), 12288);
    EQUAL(gasnett_parse_int("1.5 kB", 1), 1536);
    EQUAL(gasnett_parse_int("2G", 1), (int64_t)2 << 30);
    EQUAL(gasnett_parse_int("12b", 1024), 12);
    EQUAL(gasnett_parse_int("1e3", 1), 1000);
    EQUAL(gasnett_parse_int(gasnett_format_number((int64_t)5 << 20, text, sizeof text, 1), 1), 5 << 20);
    EQUAL(gasnett_parse_int(gasnett_format_number(77, text, sizeof text, 1), 1024), 77);
    EQUAL(real("-1e4"), -1e4);
    EQUAL(real("3/8 "), 0.375);
    EQUAL(real(""), 7);
}

int main(int argc, char **argv) {
    if (argc > 2) {
        double value = !strcmp(argv[1], "real") ? real(argv[2]) : (double)gasnett_parse_int(argv[2], (uint64_t)atoi(argv[1]));
        printf("environment: \"%s\" was read as %g\n", argv[2], value);
        return 0;
    }
    numbers();
    return 0;
}

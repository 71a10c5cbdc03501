/* Do the tools read numbers from text and from the environment, in a process that uses nothing else
 * of GASNet? With an argument: does this text end the process, since it is no number? Does only the
 * first query of a variable report it? */
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
    EQUAL(gasnett_parse_int("0x10", 1 << 20), 16 << 20);
    EQUAL(gasnett_parse_int("0X10MB", 1), 16 << 20);
    EQUAL(gasnett_parse_int("0x20B", 1024), 0x20B << 10);
    EQUAL(gasnett_parse_int("0x20 B", 1024), 32);
    EQUAL(gasnett_parse_int("0x7fffffffffffffff", 0) == INT64_MAX, 1);
    EQUAL(gasnett_parse_int("9007199254740993", 1) == 9007199254740993, 1);
    EQUAL(gasnett_parse_int("-9223372036854775808", 0) == INT64_MIN, 1);
    EQUAL(gasnett_parse_int("1.5 kB", 1), 1536);
    EQUAL(gasnett_parse_int("2G", 1), (int64_t)2 << 30);
    EQUAL(gasnett_parse_int("12b", 1024), 12);
    EQUAL(gasnett_parse_int("1e3", 1), 1000);
    EQUAL(gasnett_parse_int(gasnett_format_number((int64_t)5 << 20, text, sizeof text, 1), 1), 5 << 20);
    EQUAL(gasnett_parse_int(gasnett_format_number(77, text, sizeof text, 1), 1024), 77);
    EQUAL(real("-1e4"), -1e4);
    EQUAL(real("3/8 "), 0.375);
    EQUAL(real("3 / 8"), 0.375);
    EQUAL(real(""), 7);
}

/* How often `name` is printed on stderr, if each query is made twice. */
static unsigned times_reported(const char *name) {
    char text[4000] = "";
    unsigned times = 0;
    FILE *file = tmpfile();
    int before = dup(2);
    dup2(fileno(file), 2);
    for (int i = 0; i < 2; i++) {
        gasnett_getenv_withdefault("LLCL_TEST_A", "x");
        gasnett_getenv_yesno_withdefault("LLCL_TEST_B", 1);
        gasnett_getenv_int_withdefault("LLCL_TEST_C", 5, 1);
        gasnett_getenv_dbl_withdefault("LLCL_TEST_D", 1.5);
    }
    gasnett_envint_display("LLCL_TEST_E", 5, 1, 1);
    gasnett_envint_display("LLCL_TEST_E", 5, 1, 1);
    fflush(stderr);
    dup2(before, 2);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    for (char *at = text; (at = strstr(at, name)); at++) {
        times++;
    }
    fclose(file);
    return times;
}

static void reports(void) {
    EQUAL(times_reported("LLCL_TEST"), 0);
    gasnett_setenv("GASNET_VERBOSEENV", "1");
    EQUAL(times_reported("LLCL_TEST_"), 6);
    EQUAL(times_reported("LLCL_TEST_"), 2);
    EQUAL(times_reported("LLCL_TEST_E"), 2);
}

static void places(void) {
    char *place = gasnett_current_loc;
    EQUAL(!strstr(place, "places") || !strstr(place, __FILE__ ":"), 0);
    free(place);
    uint32_t word = 1;
    EQUAL(gasnett_isLittleEndian(), *(char *)&word);
}

int main(int argc, char **argv) {
    if (argc > 2) {
        double value = !strcmp(argv[1], "real") ? real(argv[2]) : (double)gasnett_parse_int(argv[2], (uint64_t)atoi(argv[1]));
        printf("environment: \"%s\" was read as %g\n", argv[2], value);
        return 0;
    }
    numbers();
    reports();
    places();
    return 0;
}

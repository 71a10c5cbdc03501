/* The tools: environment variables, and numbers as text. */
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char units[] = "BKMGTPE"; /* each 1024 times the one before */

char *gasnett_format_number(int64_t value, char *buffer, size_t size, int is_memory) {
    int unit = 0;
    while (is_memory && unit < 6 && value && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    if (!is_memory) {
        snprintf(buffer, size, "%" PRId64, value);
    } else {
        snprintf(buffer, size, unit ? "%" PRId64 " %cB" : "%" PRId64 " %c", value, units[unit]);
    }
    return buffer;
}

/* Ends the job: a client would notice a misread size much later. */
static void bad_number(const char *text) { fatal("\"%s\" is no number", text); }

/* Ends the job unless only blanks are left of `text`. */
static void must_end(const char *end, const char *text) {
    if (end[strspn(end, " \t")]) {
        bad_number(text);
    }
}

/* Reads the number at `at`, a part of `text`. A long double holds each 64-bit integer. */
static long double read_number(const char *at, char **end, const char *text) {
    errno = 0;
    long double value = strtold(at, end);
    if (*end == at || errno == ERANGE || !isfinite(value)) {
        bad_number(text);
    }
    return value;
}

/* Reads a unit: K, KB, G and so on, in either case. Returns `otherwise` if there is none. */
static long double read_unit(char **at, long double otherwise) {
    const char *end = *at + strspn(*at, " \t");
    const char *found = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    long double factor = 1;
    if (!found) {
        return otherwise;
    }
    for (const char *u = units; u < found; u++) {
        factor *= 1024;
    }
    end += found > units && toupper((unsigned char)end[1]) == 'B' ? 2 : 1;
    *at = (char *)end;
    return factor;
}

/* Reads a number, decimal or hexadecimal, and its unit. Without a unit, numbers below 1 count in
 * `whole`, others in `unit`. A B or E right behind a hexadecimal number is a digit of it, as in
 * GASNet's conduits. */
static long double read_size(const char *text, char **end, long double unit, long double whole) {
    long double value = read_number(text, end, text);
    return value * read_unit(end, value < 1 ? whole : unit);
}

static int64_t as_integer(long double value, const char *text) {
    if (value < -0x1p63L || value >= 0x1p63L) {
        bad_number(text);
    }
    return (int64_t)value;
}

int64_t gasnett_parse_int(const char *text, uint64_t unit) {
    char *end;
    long double value = unit ? read_size(text, &end, unit, unit) : read_number(text, &end, text);
    must_end(end, text);
    if (!unit && value != truncl(value)) {
        bad_number(text);
    }
    return as_integer(value, text);
}

void gasnett_setenv(const char *name, const char *value) { setenv(name, value, 1); }
void gasnett_unsetenv(const char *name) { unsetenv(name); }
char *gasnett_getenv(const char *name) { return getenv(name); }

int gasnett_verboseenv(void) {
    const char *value = getenv("GASNET_VERBOSEENV");
    return job.rank == 0 && value && *value && *value != '0' && *value != 'n' && *value != 'N';
}

static void show(const char *name, const char *value, int is_default) {
    if (gasnett_verboseenv()) {
        fprintf(stderr, "ENV parameter: %s = %s%s\n", name, value, is_default ? " (default)" : "");
    }
}
void gasnett_envstr_display(const char *name, const char *value, int is_default) {
    show(name, value ? value : "*not set*", is_default);
}
void gasnett_envint_display(const char *name, int64_t value, int is_default, int is_memory) {
    char text[80];
    show(name, gasnett_format_number(value, text, sizeof text, is_memory), is_default);
}
void gasnett_envdbl_display(const char *name, double value, int is_default) {
    char text[80];
    snprintf(text, sizeof text, "%g", value);
    show(name, text, is_default);
}

/* The variables that queries have reported. Only the first query of a variable reports it. */
struct reported {
    struct reported *next;
    char name[];
};
static struct reported *reported;
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;

static bool reports(const char *name) {
    if (!gasnett_verboseenv()) {
        return false;
    }
    pthread_mutex_lock(&reporting);
    struct reported *found = reported;
    while (found && strcmp(found->name, name)) {
        found = found->next;
    }
    struct reported *added = found ? NULL : malloc(sizeof *added + strlen(name) + 1);
    if (added) {
        strcpy(added->name, name);
        added->next = reported;
        reported = added;
    }
    pthread_mutex_unlock(&reporting);
    return !found;
}

char *gasnett_getenv_withdefault(const char *name, const char *otherwise) {
    char *value = getenv(name);
    if (reports(name)) {
        gasnett_envstr_display(name, value ? value : otherwise, !value);
    }
    return value ? value : (char *)otherwise;
}

int gasnett_getenv_yesno_withdefault(const char *name, int otherwise) {
    const char *value = getenv(name);
    int answer = otherwise;
    if (value && *value) {
        if (!strcasecmp(value, "y") || !strcasecmp(value, "yes") || !strcmp(value, "1")) {
            answer = 1;
        } else if (!strcasecmp(value, "n") || !strcasecmp(value, "no") || !strcmp(value, "0")) {
            answer = 0;
        } else {
            fatal("%s=%s, expected yes or no", name, value);
        }
    }
    if (reports(name)) {
        show(name, answer ? "YES" : "NO", !value);
    }
    return answer;
}

int64_t gasnett_getenv_int_withdefault(const char *name, int64_t otherwise, uint64_t unit) {
    const char *value = getenv(name);
    int64_t answer = value && *value ? gasnett_parse_int(value, unit) : otherwise;
    if (reports(name)) {
        gasnett_envint_display(name, answer, !value, unit != 0);
    }
    return answer;
}

/* The value may be a number or a fraction, as 1/3. */
double gasnett_getenv_dbl_withdefault(const char *name, double otherwise) {
    const char *value = getenv(name);
    double answer = otherwise;
    if (value && *value) {
        char *end;
        long double number = read_number(value, &end, value);
        const char *slash = end + strspn(end, " \t");
        if (*slash == '/') {
            number /= read_number(slash + 1, &end, value);
        }
        must_end(end, value);
        answer = (double)number;
        if (!isfinite(answer)) {
            bad_number(value);
        }
    }
    if (reports(name)) {
        gasnett_envdbl_display(name, answer, !value);
    }
    return answer;
}

uint64_t limit_from_environment(const char *name, uint64_t otherwise, uint64_t memory, unsigned sharers) {
    const char *text = getenv(name);
    uint64_t limit = otherwise;
    if (text && *text) {
        char *end;
        bool is_hex = !strncasecmp(text + strspn(text, " \t+-"), "0x", 2);
        long double value = read_size(text, &end, is_hex ? 1 : 1 << 20, memory);
        end += strspn(end, " \t");
        if (*end == '/') {
            char suffix = (char)toupper((unsigned char)end[1]);
            value /= suffix == 'H' ? sharers : 1;
            end += suffix == 'H' || suffix == 'P' ? 2 : 0;
        }
        must_end(end, text);
        if (value < 0) {
            bad_number(text);
        }
        limit = (uint64_t)as_integer(value, text);
    }
    if (reports(name)) {
        gasnett_envint_display(name, (int64_t)limit, !text, 1);
    }
    return limit;
}

#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct {
    const bench_options_t *options;
    const char *mode;
    FILE *csv;
    struct utsname host;
} out = {.mode = "-"};

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* ---- clock ---- */

double bench_ticks_per_ns(void)
{
    static double ratio;
    if (ratio > 0)
        return ratio;
    double samples[5];
    for (int i = 0; i < 5; i++) {
        uint64_t n0 = bench_now_ns(), c0 = bench_ticks(), n1;
        do {
            n1 = bench_now_ns();
        } while (n1 - n0 < 4000000);
        samples[i] = (double)(bench_ticks() - c0) / (double)(n1 - n0);
    }
    ratio = bench_percentile(samples, 5, 50);
    return ratio;
}

void bench_sleep_us(unsigned microseconds)
{
    struct timespec t = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* ---- statistics ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_percentile(double *values, size_t count, double percent)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, compare_doubles);
    double place = percent / 100 * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return values[count - 1];
    return values[below] + (place - (double)below) * (values[below + 1] - values[below]);
}

void bench_add(bench_series_t *series, double limit, double ours, double p99)
{
    if (series->repeats == BENCH_MAX_REPEATS)
        bench_die("bench_add: more than %d repeats", BENCH_MAX_REPEATS);
    series->ours[series->repeats] = ours;
    series->limit[series->repeats] = limit;
    series->p99[series->repeats] = p99;
    series->repeats++;
}

static double quantile_of(const double *values, int count, double percent)
{
    double copy[BENCH_MAX_REPEATS];
    size_t kept = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(values[i]))
            copy[kept++] = values[i];
    return bench_percentile(copy, kept, percent);
}

double bench_median(const bench_series_t *series)
{
    return quantile_of(series->ours, series->repeats, 50);
}

int bench_best(const bench_series_t *series, int how_many)
{
    int best = 0;
    for (int i = 1; i < how_many; i++)
        if (bench_median(&series[i]) > bench_median(&series[best]))
            best = i;
    return best;
}

/* ---- options ---- */

static void usage(FILE *to, const char *program, const char *what)
{
    fprintf(to,
            "usage: %s [options]\n%s\n"
            "  -m, --mode auto|offload|direct  execution mode (default: LLCL_EXECUTION, else auto)\n"
            "  -c, --csv FILE                  append the records to FILE\n"
            "  -q, --quick                     fewer sizes and repeats\n"
            "  -p, --pin                       main thread and progress thread on cores of their own\n"
            "  -r, --repeats N                 1..%d repeats (default 7, quick 5)\n"
            "      --transport NAME            over this wire (LLCL_TRANSPORT), as mpi under mpirun\n"
            "  -h, --help                      this text\n",
            program, what, BENCH_MAX_REPEATS);
}

static int repeats_of(const char *text, const char *program)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 1 || value > BENCH_MAX_REPEATS)
        bench_die("%s: --repeats is '%s', expected 1..%d", program, text, BENCH_MAX_REPEATS);
    return (int)value;
}

bench_options_t bench_parse(int argc, char **argv, const char *what)
{
    static const struct option table[] = {
        {"mode", required_argument, NULL, 'm'},    {"csv", required_argument, NULL, 'c'},
        {"quick", no_argument, NULL, 'q'},         {"pin", no_argument, NULL, 'p'},
        {"repeats", required_argument, NULL, 'r'}, {"alone", no_argument, NULL, 'A'},
        {"against", required_argument, NULL, 'G'}, {"help", no_argument, NULL, 'h'},
        {"policy", required_argument, NULL, 'P'},  {"hottest", required_argument, NULL, 'H'},
        {"continued", no_argument, NULL, 'C'},     {"peers", required_argument, NULL, 'E'},
        {"transport", required_argument, NULL, 'T'}, {"only", required_argument, NULL, 'O'},
        {"chosen", no_argument, NULL, 'S'},
        {NULL, 0, NULL, 0},
    };
    bench_options_t options = {.program = argv[0], .show = 1};
    int letter;
    while ((letter = getopt_long(argc, argv, "m:c:qpr:h", table, NULL)) != -1) {
        switch (letter) {
        case 'm': options.mode = optarg; break;
        case 'c': options.csv = optarg; break;
        case 'q': options.quick = 1; break;
        case 'p': options.pin = 1; break;
        case 'r': options.repeats = repeats_of(optarg, argv[0]); break;
        case 'A': options.alone = 1; break;
        case 'G': options.against = strtod(optarg, NULL); break;
        case 'P': options.policy = optarg; break;
        case 'H': options.hottest = strtod(optarg, NULL); break;
        case 'E': options.peers = optarg; break;
        case 'T': setenv("LLCL_TRANSPORT", optarg, 1); break; /* no benchmark has made a context yet */
        case 'O': options.only = optarg; break;
        case 'S': options.chosen = 1; break;
        case 'C': options.continued = 1; break;
        case 'h': usage(stdout, argv[0], what); exit(0);
        default: usage(stderr, argv[0], what); exit(2);
        }
    }
    if (optind != argc) {
        usage(stderr, argv[0], what);
        exit(2);
    }
    if (options.repeats == 0)
        options.repeats = options.quick ? 5 : 7;
    bench_cores(); /* records the processors before a thread is pinned */
    return options;
}

/* ---- records ---- */

void bench_set_mode(const char *mode) { out.mode = mode; }

void bench_begin(const bench_options_t *options, const char *title)
{
    out.options = options;
    uname(&out.host);
    if (!options->show)
        return;
    if (!options->continued) {
        printf("\n%s  [mode %s; %s; %d cores; Linux %s]\n", title, out.mode, out.host.nodename, bench_cores(), out.host.release);
        printf("%-46s %9s %3s %10s %10s %10s %10s %-7s %10s %8s  %s\n", "case", "bytes", "thr", "median", "q1", "q3", "p99",
               "unit", "limit", "ratio", "limit is; target");
    }
    if (options->csv == NULL)
        return;
    out.csv = fopen(options->csv, "a");
    if (out.csv == NULL)
        bench_die("%s: --csv %s: %s", options->program, options->csv, strerror(errno));
    if (ftell(out.csv) == 0)
        fputs("bench,case,mode,host,cores,ranks,threads,size,count,repeats,unit,median,q1,q3,p99,limit_name,limit,ratio,target,verdict\n",
              out.csv);
}

static const char *number(char *buffer, size_t size, double value)
{
    if (isnan(value))
        snprintf(buffer, size, "%s", "");
    else if (fabs(value) >= 1000)
        snprintf(buffer, size, "%.0f", value);
    else
        snprintf(buffer, size, "%.*f", fabs(value) >= 100 ? 1 : fabs(value) >= 10 ? 2 : 3, value);
    return buffer;
}

/* Target "ratio<=3": the ratio is at most 3. "value>=100": the median is at least 100. */
static const char *verdict_of(const char *target, double median, double ratio)
{
    if (target == NULL)
        return "";
    double got = strncmp(target, "ratio", 5) == 0 ? ratio : median;
    double asked = strtod(target + 7, NULL);
    if (isnan(got))
        return "MISS";
    int reached = target[5] == '<' ? got <= asked : got >= asked;
    return reached ? "ok" : "MISS";
}

void bench_emit(const bench_record_t *record)
{
    if (!out.options->show)
        return;
    const bench_series_t *s = &record->series;
    double ratios[BENCH_MAX_REPEATS];
    for (int i = 0; i < s->repeats; i++)
        ratios[i] = s->limit[i] > 0 ? s->ours[i] / s->limit[i] : NAN;
    double median = quantile_of(s->ours, s->repeats, 50), ratio = quantile_of(ratios, s->repeats, 50);
    const char *verdict = verdict_of(record->target, median, ratio);
    const double shown[] = {median, quantile_of(s->ours, s->repeats, 25), quantile_of(s->ours, s->repeats, 75),
                            quantile_of(s->p99, s->repeats, 50), quantile_of(s->limit, s->repeats, 50), ratio};
    char text[6][32];
    for (int i = 0; i < 6; i++)
        number(text[i], sizeof text[i], shown[i]);
    if (!record->file_only)
        printf("%-46s %9zu %3d %10s %10s %10s %10s %-7s %10s %8s  %s%s%s%s%s\n", record->what, record->size, record->threads,
               text[0], text[1], text[2], text[3], record->unit, text[4], text[5],
               record->limit_name ? record->limit_name : "", record->target ? "; " : "", record->target ? record->target : "",
               record->target ? " " : "", verdict);
    fflush(stdout);
    if (out.csv == NULL)
        return;
    const char *program = strrchr(out.options->program, '/');
    fprintf(out.csv, "%s,%s,%s,%s,%d,%d,%d,%zu,%llu,%d,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n",
            program ? program + 1 : out.options->program, record->what, out.mode, out.host.nodename, bench_cores(),
            record->ranks, record->threads, record->size, (unsigned long long)record->count, s->repeats, record->unit,
            text[0], text[1], text[2], text[3], record->limit_name ? record->limit_name : "", text[4], text[5],
            record->target ? record->target : "", verdict);
    fflush(out.csv);
}

void bench_note(const char *text)
{
    if (out.options->show)
        printf("  %s\n", text);
}

void bench_end(void)
{
    if (out.csv != NULL && fclose(out.csv) != 0)
        bench_die("%s: %s: %s", out.options->program, out.options->csv, strerror(errno));
    out.csv = NULL;
    fflush(stdout);
}

/* ---- placement ---- */

static cpu_set_t all_cores;

int bench_cores(void)
{
    if (CPU_COUNT(&all_cores) == 0 && sched_getaffinity(0, sizeof all_cores, &all_cores) != 0)
        bench_die("sched_getaffinity: %s", strerror(errno));
    return CPU_COUNT(&all_cores);
}

/* The set with the nth (modulo) processor, or with all of them if `nth` is negative. */
static cpu_set_t cores_of(int nth)
{
    cpu_set_t one;
    int left = nth % bench_cores();
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all_cores) && left-- == 0)
            CPU_SET(cpu, &one);
    return nth < 0 ? all_cores : one;
}

static void place(pid_t thread, int nth)
{
    cpu_set_t cores = cores_of(nth);
    if (sched_setaffinity(thread, sizeof cores, &cores) != 0 && errno != ESRCH) /* the thread may have ended meanwhile */
        bench_die("sched_setaffinity: %s", strerror(errno));
}

void bench_pin(int nth) { place(0, nth); }

void bench_unpin(void) { place(0, -1); }

void bench_pin_others(int nth)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    if (tasks == NULL)
        bench_die("/proc/self/task: %s", strerror(errno));
    while ((task = readdir(tasks)) != NULL) {
        pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0 && thread != getpid())
            place(thread, nth);
    }
    closedir(tasks);
}

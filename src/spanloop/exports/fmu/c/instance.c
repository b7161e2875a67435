/* The interface of FMI 3.0 for a mechanism of spanloop.
 *
 * The text before this one defines the model:
 *     NAME, TOKEN, STEP                     texts; the length of a whole step [s]
 *     N_MEMORY, N_VARIABLES                 numbers of an instance; its variables
 *     N_Q, N_V, N_P, N_START                sizes of q, v and the parameters; numbers at the start that are not zero
 *     AT_T, AT_H, AT_Q, AT_V, AT_SHOWN, AT_P, AT_RATES, AT_CLOSING, AT_OUTPUTS    where arrays begin
 *     COSIMULATES, EXCHANGES, CLOSES, FIXED_START, OPEN_AT_START
 *     starts, variables, quaternions        tables; N_QUATERNIONS: entries of the last
 *     model_step, model_shown, model_rates, model_closing, model_outputs          functions of the memory
 *
 * Nothing here is global but constants: any number of instances may run side by side.
 */

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

typedef int status;
enum { OK, WARNING, DISCARD, ERROR, FATAL };
enum { TIME, INPUT, PARAMETER, POSITION, VELOCITY, OUTPUT, RATE };                         /* kinds of variables */
enum { INSTANTIATED = 1, INITIALIZATION = 2, EVENT = 4, CONTINUOUS = 8, STEPPING = 16, TERMINATED = 32 }; /* modes */
enum { LOST = 1, HALTED = 2, NOT_CONVERGED = 4 };                                          /* bits of model_step */

#define ROUNDS 20        /* projections of a start, at most */
#define STAGES 16        /* from the exported parameters to others */
#define CLOSED 1e-14     /* rad, or of the loop's length: not corrected */
#define ENOUGH 1e-9      /* must be reached; a smaller change of the start is not reported */
#define FAR_OPEN 0.05    /* a start that is open by more is refused */
#define KEPT 1e-6        /* by which what was set may change, relative to 1 + |x| */
#define UNIT 1e-6        /* by which the length of a quaternion at the start may differ from 1 */
#define DRIFT 1e-6       /* change by projection, relative to 1 + |x|, at which Model Exchange asks for an event */

typedef void (*log_function)(void *environment, int status, const char *category, const char *message);

typedef struct {
    double time, origin; /* time of the state; time of the whole step number 0 */
    int64_t count;       /* whole steps since then */
    int mode, exchange, drifted;
    unsigned char set_q[N_Q + 1], set_v[N_V + 1]; /* whether the start was set from outside */
    double m[N_MEMORY];
} state;

typedef struct {
    state now, before; /* before: at the start of a communication step */
    int has_shown, has_outputs, has_rates, may_return_early;
    void *environment;
    log_function log;
} instance;

static status say(const instance *s, status level, const char *format, ...)
{
    static const char *const categories[] = {"", "logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusError"};
    char text[600];
    va_list rest;
    va_start(rest, format);
    (void)vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    if (s->log) s->log(s->environment, level, categories[level], text);
    return level;
}

static int is_finite(double x)
{
    return x - x == 0.0;
}

static int all_finite(const double *x, int n)
{
    int k;
    for (k = 0; k < n; k++)
        if (!is_finite(x[k])) return 0;
    return 1;
}

static const char *name_of(int kind, int number)
{
    int k;
    for (k = 0; k < N_VARIABLES; k++)
        if (variables[k].kind == kind && number-- == 0) return variables[k].name;
    return "?";
}

static status expect(const instance *s, int modes, const char *function)
{
    if (s->now.mode & modes) return OK;
    return say(s, ERROR, "%s: not allowed in this mode of the instance", function);
}

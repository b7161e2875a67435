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
#define UNIT 1e-6        /* by which the length of a quaternion at the start may differ from 1 */
#define DRIFT 1e-6       /* change by projection, relative to 1 + |x|, at which Model Exchange asks for an event */

typedef void (*log_function)(void *environment, int status, const char *category, const char *message);

typedef struct {
    double time, origin; /* time of the state; time of the whole step number 0 */
    int64_t count;       /* whole steps since then */
    int mode, exchange, drifted;
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

/* ---- values */

static void changed(instance *s)
{
    s->has_shown = s->has_outputs = s->has_rates = 0;
}

static void start(instance *s)
{
    int k;
    const int exchange = s->now.exchange;
    memset(&s->now, 0, sizeof s->now);
    for (k = 0; k < N_START; k++) s->now.m[starts[k].place] = starts[k].value;
    s->now.m[AT_H] = STEP;
    s->now.mode = INSTANTIATED;
    s->now.exchange = exchange;
    changed(s);
}

/* The velocities that outputs are computed from: the projected ones of Co-Simulation, as sl.simulate records them. */
static void show(instance *s)
{
    double *m = s->now.m;
    if (s->has_shown) return;
    m[AT_T] = s->now.time;
    if (s->now.mode == STEPPING)
        model_shown(m);
    else
        memcpy(m + AT_SHOWN, m + AT_V, N_V * sizeof(double));
    s->has_shown = 1;
}

static const char *reason(int bits)
{
    if (bits & 4) return "an angle is beyond 1e6 rad, the range of the sine";
    if (bits & 2) return "a condition on the inputs does not hold";
    return "an input is not finite, or the state has no answer (a singular or open position)";
}

static status need_outputs(instance *s)
{
    int bits;
    if (s->has_outputs) return OK;
    show(s);
    bits = model_outputs(s->now.m);
    if (bits) return say(s, DISCARD, "outputs at t = %g s: %s", s->now.time, reason(bits));
    s->has_outputs = 1;
    return OK;
}

static status need_rates(instance *s)
{
    int bits;
    if (s->has_rates) return OK;
    show(s);
    bits = model_rates(s->now.m);
    if (bits) return say(s, DISCARD, "derivatives at t = %g s: %s", s->now.time, reason(bits));
    s->has_rates = 1;
    return OK;
}

static status get_one(instance *s, uint32_t reference, double *value)
{
    status found = OK;
    if (reference >= N_VARIABLES) return say(s, ERROR, "fmi3GetFloat64: there is no variable %u", (unsigned)reference);
    if (variables[reference].kind == RATE) found = need_rates(s);
    if (variables[reference].kind == OUTPUT) found = need_outputs(s);
    if (variables[reference].kind == VELOCITY) {
        show(s);
        if (!is_finite(s->now.m[variables[reference].place]))
            found = say(s, DISCARD, "%s at t = %g s: %s", variables[reference].name, s->now.time, reason(1));
    }
    if (found > WARNING) return found;
    *value = variables[reference].kind == TIME ? s->now.time : s->now.m[variables[reference].place];
    return found;
}

static status may_set(const instance *s, uint32_t reference, double value)
{
    const int early = INSTANTIATED | INITIALIZATION;
    int kind;
    if (reference >= N_VARIABLES) return say(s, ERROR, "fmi3SetFloat64: there is no variable %u", (unsigned)reference);
    kind = variables[reference].kind;
    if (kind != INPUT && kind != PARAMETER && kind != POSITION && kind != VELOCITY)
        return say(s, ERROR, "%s is computed; it cannot be set", variables[reference].name);
    if (s->now.mode == TERMINATED || (kind != INPUT && !(s->now.mode & early)))
        return say(s, ERROR, "%s can be set before the end of the initialization only", variables[reference].name);
    if (!is_finite(value)) return say(s, ERROR, "%s is set to %g; must be finite", variables[reference].name, value);
    if (value < variables[reference].least)
        return say(s, ERROR, "%s is set to %g; must be >= %g", variables[reference].name, value, variables[reference].least);
    return OK;
}

static void set_one(instance *s, uint32_t reference, double value)
{
    const int place = variables[reference].place;
    s->now.m[variables[reference].kind == VELOCITY ? place - AT_SHOWN + AT_V : place] = value;
}

/* ---- closed loops, quaternions of unit length */

/* Projections until nothing is left to correct; the closure error that is left in *left. */
static int project(instance *s, double *left)
{
    double *m = s->now.m, before = INFINITY;
    int k, bits;
    for (k = 0; k < ROUNDS; k++) {
        bits = model_closing(m);
        if (bits) return bits;
        memcpy(m + AT_Q, m + AT_CLOSING, N_Q * sizeof(double));
        memcpy(m + AT_V, m + AT_CLOSING + N_Q, N_V * sizeof(double));
        *left = m[AT_CLOSING + N_Q + N_V + 1];
        if (*left <= CLOSED || *left > 0.5 * before) break;
        before = *left;
    }
    return 0;
}

/* The largest change of q and v by a projection, relative to 1 + |x|, after model_closing. */
static double drift(const double *m)
{
    double most = 0.0;
    int k;
    for (k = 0; k < N_Q + N_V; k++) {
        const double x = k < N_Q ? m[AT_Q + k] : m[AT_V + k - N_Q];
        const double d = fabs(m[AT_CLOSING + k] - x) / (1.0 + fabs(x));
        if (d > most) most = d;
    }
    return most;
}

static double at_start(int place)
{
    int k;
    for (k = 0; k < N_START; k++)
        if (starts[k].place == place) return starts[k].value;
    return 0.0;
}

static int as_exported(const instance *s, int first, int n)
{
    int k;
    for (k = 0; k < n; k++)
        if (s->now.m[first + k] != at_start(first + k)) return 0;
    return 1;
}

static status report_change(const instance *s, const double *q, const double *v)
{
    double most = 0.0;
    int k, which = 0;
    for (k = 0; k < N_Q + N_V; k++) {
        const double d = k < N_Q ? s->now.m[AT_Q + k] - q[k] : s->now.m[AT_V + k - N_Q] - v[k - N_Q];
        if (fabs(d) > most) {
            most = fabs(d);
            which = k;
        }
    }
    if (most <= ENOUGH) return OK;
    return say(s, WARNING, "the start was brought to the closed loops: %s changed by %.3g",
               which < N_Q ? name_of(POSITION, which) : name_of(VELOCITY, which - N_Q), most);
}

/* The start as it was set, brought to the closed loops, or refused. */
static status settle(instance *s)
{
    double *m = s->now.m, left = 0.0, q[N_Q + 1], v[N_V + 1], p[N_P + 1];
    const int same_q = as_exported(s, AT_Q, N_Q), same_p = as_exported(s, AT_P, N_P);
    int stage, k, bits = 0, stages = same_q && !same_p ? STAGES : 1;
    if (same_q && same_p && as_exported(s, AT_V, N_V)) return OK;
    if (FIXED_START) return say(s, ERROR, "the start cannot be changed: contacts or events of this model begin with it");
    memcpy(q, m + AT_Q, N_Q * sizeof(double));
    memcpy(v, m + AT_V, N_V * sizeof(double));
    memcpy(p, m + AT_P, N_P * sizeof(double));
    for (k = 0; k < N_QUATERNIONS; k++) {
        const double *x = q + quaternions[k];
        const double length = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
        if (!(fabs(length - 1.0) <= UNIT))
            return say(s, ERROR, "the start: the quaternion from %s on has the length %g; must be 1",
                       name_of(POSITION, quaternions[k]), length);
    }
    bits = model_closing(m);
    if (bits) return say(s, ERROR, "the start: %s", reason(bits));
    if (stages == 1 && m[AT_CLOSING + N_Q + N_V] > FAR_OPEN + OPEN_AT_START)
        return say(s, ERROR, "the start: a loop is open by %.3g (rad, or of its length), more than %g. Set all q.* of the "
                   "loop to a closed position", m[AT_CLOSING + N_Q + N_V], FAR_OPEN);
    for (stage = 1; stage <= stages && !bits; stage++) {
        for (k = 0; k < N_P; k++) {
            const double from = at_start(AT_P + k);
            m[AT_P + k] = stage == stages ? p[k] : from + (p[k] - from) * (double)stage / (double)stages;
        }
        bits = project(s, &left);
    }
    memcpy(m + AT_P, p, N_P * sizeof(double));
    if (bits || !(left <= ENOUGH + 2.0 * OPEN_AT_START) || !all_finite(m + AT_Q, N_Q) || !all_finite(m + AT_V, N_V)) {
        memcpy(m + AT_Q, q, N_Q * sizeof(double));
        memcpy(m + AT_V, v, N_V * sizeof(double));
        return say(s, ERROR, "the start: the loops cannot be closed from here with these parameters. Set all q.* to a "
                   "closed position");
    }
    return report_change(s, q, v);
}

/* ---- instances */

EXPORT const char *fmi3GetVersion(void)
{
    return "3.0";
}

EXPORT status fmi3SetDebugLogging(void *s, bool on, size_t n, const char *const categories[])
{
    (void)s, (void)on, (void)n, (void)categories;
    return OK;
}

static void *instantiate(const char *token, int exchange, int offered, void *environment, log_function log)
{
    instance *s, known;
    known.environment = environment;
    known.log = log;
    if (!offered) {
        (void)say(&known, ERROR, "%s does not have this kind of interface", NAME);
        return NULL;
    }
    if (!token || strcmp(token, TOKEN) != 0) {
        (void)say(&known, ERROR, "instantiationToken is %s; expected %s. The binary and the description differ",
                  token ? token : "NULL", TOKEN);
        return NULL;
    }
    s = (instance *)calloc(1, sizeof *s);
    if (!s) {
        (void)say(&known, ERROR, "there is not enough memory for an instance");
        return NULL;
    }
    s->environment = environment;
    s->log = log;
    s->now.exchange = exchange;
    start(s);
    return s;
}

EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible, bool on,
                                          void *environment, log_function log)
{
    (void)name, (void)resources, (void)visible, (void)on;
    return instantiate(token, 1, EXCHANGES, environment, log);
}

EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible, bool on,
                                         bool events, bool early, const uint32_t *needed, size_t n, void *environment,
                                         log_function log, void (*update)(void))
{
    instance *s = (instance *)instantiate(token, 0, COSIMULATES, environment, log);
    (void)name, (void)resources, (void)visible, (void)on, (void)events, (void)needed, (void)n, (void)update;
    if (s) s->may_return_early = early;
    return s;
}

EXPORT void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, bool visible,
                                               bool on, void *environment, log_function log, void (*clock)(void),
                                               void (*lock)(void), void (*unlock)(void))
{
    (void)name, (void)resources, (void)visible, (void)on, (void)clock, (void)lock, (void)unlock;
    return instantiate(token, 0, 0, environment, log);
}

EXPORT void fmi3FreeInstance(void *s)
{
    free(s);
}

EXPORT status fmi3EnterInitializationMode(void *given, bool has_tolerance, double tolerance, double time, bool has_stop,
                                          double stop)
{
    instance *s = (instance *)given;
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    if (expect(s, INSTANTIATED, "fmi3EnterInitializationMode")) return ERROR;
    if (!is_finite(time)) return say(s, ERROR, "startTime is %g; must be finite", time);
    s->now.time = s->now.origin = s->now.m[AT_T] = time;
    s->now.count = 0;
    s->now.mode = INITIALIZATION;
    changed(s);
    return OK;
}

EXPORT status fmi3ExitInitializationMode(void *given)
{
    instance *s = (instance *)given;
    status found;
    if (expect(s, INITIALIZATION, "fmi3ExitInitializationMode")) return ERROR;
    found = settle(s);
    changed(s);
    if (found <= WARNING) s->now.mode = s->now.exchange ? EVENT : STEPPING;
    return found;
}

EXPORT status fmi3Terminate(void *given)
{
    instance *s = (instance *)given;
    if (expect(s, EVENT | CONTINUOUS | STEPPING, "fmi3Terminate")) return ERROR;
    s->now.mode = TERMINATED;
    return OK;
}

EXPORT status fmi3Reset(void *s)
{
    start((instance *)s);
    return OK;
}

EXPORT status fmi3GetFloat64(void *given, const uint32_t references[], size_t n, double values[], size_t n_values)
{
    instance *s = (instance *)given;
    status worst = OK;
    size_t k;
    if (n_values != n) return say(s, ERROR, "fmi3GetFloat64: %zu values for %zu numbers", n_values, n);
    for (k = 0; k < n && worst <= WARNING; k++) {
        const status found = get_one(s, references[k], &values[k]);
        if (found > worst) worst = found;
    }
    return worst;
}

EXPORT status fmi3SetFloat64(void *given, const uint32_t references[], size_t n, const double values[], size_t n_values)
{
    instance *s = (instance *)given;
    size_t k;
    if (n_values != n) return say(s, ERROR, "fmi3SetFloat64: %zu values for %zu numbers", n_values, n);
    for (k = 0; k < n; k++)
        if (may_set(s, references[k], values[k])) return ERROR;
    for (k = 0; k < n; k++) set_one(s, references[k], values[k]);
    changed(s);
    return OK;
}

/* ---- types that no variable has */

static status none(void *s, size_t n, const char *function)
{
    return n ? say((const instance *)s, ERROR, "%s: all variables are Float64", function) : OK;
}

#define NO_VARIABLES(type, word)                                                                          \
    EXPORT status fmi3Get##word(void *s, const uint32_t references[], size_t n, type values[], size_t m)  \
    {                                                                                                     \
        (void)references, (void)values, (void)m;                                                          \
        return none(s, n, "fmi3Get" #word);                                                               \
    }                                                                                                     \
    EXPORT status fmi3Set##word(void *s, const uint32_t references[], size_t n, const type values[], size_t m) \
    {                                                                                                     \
        (void)references, (void)values, (void)m;                                                          \
        return none(s, n, "fmi3Set" #word);                                                               \
    }

typedef const char *text;
NO_VARIABLES(float, Float32)
NO_VARIABLES(int8_t, Int8)
NO_VARIABLES(uint8_t, UInt8)
NO_VARIABLES(int16_t, Int16)
NO_VARIABLES(uint16_t, UInt16)
NO_VARIABLES(int32_t, Int32)
NO_VARIABLES(uint32_t, UInt32)
NO_VARIABLES(int64_t, Int64)
NO_VARIABLES(uint64_t, UInt64)
NO_VARIABLES(bool, Boolean)
NO_VARIABLES(text, String)

EXPORT status fmi3GetBinary(void *s, const uint32_t r[], size_t n, size_t sizes[], const uint8_t *values[], size_t m)
{
    (void)r, (void)sizes, (void)values, (void)m;
    return none(s, n, "fmi3GetBinary");
}

EXPORT status fmi3SetBinary(void *s, const uint32_t r[], size_t n, const size_t sizes[], const uint8_t *const values[],
                            size_t m)
{
    (void)r, (void)sizes, (void)values, (void)m;
    return none(s, n, "fmi3SetBinary");
}

EXPORT status fmi3GetClock(void *s, const uint32_t r[], size_t n, bool values[])
{
    (void)r, (void)values;
    return none(s, n, "fmi3GetClock");
}

EXPORT status fmi3SetClock(void *s, const uint32_t r[], size_t n, const bool values[])
{
    (void)r, (void)values;
    return none(s, n, "fmi3SetClock");
}

/* ---- the whole state */

EXPORT status fmi3GetFMUState(void *given, void **kept)
{
    instance *s = (instance *)given;
    if (!*kept) *kept = malloc(sizeof(state));
    if (!*kept) return say(s, ERROR, "fmi3GetFMUState: there is not enough memory");
    memcpy(*kept, &s->now, sizeof(state));
    return OK;
}

EXPORT status fmi3SetFMUState(void *given, void *kept)
{
    instance *s = (instance *)given;
    if (!kept) return say(s, ERROR, "fmi3SetFMUState: no state is given");
    if (((state *)kept)->exchange != s->now.exchange)
        return say(s, ERROR, "fmi3SetFMUState: the state is of the other kind of interface");
    memcpy(&s->now, kept, sizeof(state));
    changed(s);
    return OK;
}

EXPORT status fmi3FreeFMUState(void *s, void **kept)
{
    (void)s;
    if (kept) {
        free(*kept);
        *kept = NULL;
    }
    return OK;
}

EXPORT status fmi3SerializedFMUStateSize(void *s, void *kept, size_t *size)
{
    (void)s, (void)kept;
    *size = sizeof TOKEN + sizeof(state);
    return OK;
}

EXPORT status fmi3SerializeFMUState(void *s, void *kept, uint8_t bytes[], size_t size)
{
    if (size < sizeof TOKEN + sizeof(state) || !kept)
        return say((const instance *)s, ERROR, "fmi3SerializeFMUState: the buffer has %zu bytes", size);
    memcpy(bytes, TOKEN, sizeof TOKEN);
    memcpy(bytes + sizeof TOKEN, kept, sizeof(state));
    return OK;
}

EXPORT status fmi3DeserializeFMUState(void *given, const uint8_t bytes[], size_t size, void **kept)
{
    const instance *s = (const instance *)given;
    if (size < sizeof TOKEN + sizeof(state) || memcmp(bytes, TOKEN, sizeof TOKEN) != 0)
        return say(s, ERROR, "fmi3DeserializeFMUState: these bytes are not of a state of %s", NAME);
    if (!*kept) *kept = malloc(sizeof(state));
    if (!*kept) return say(s, ERROR, "fmi3DeserializeFMUState: there is not enough memory");
    memcpy(*kept, bytes + sizeof TOKEN, sizeof(state));
    return OK;
}

/* ---- Model Exchange */

EXPORT status fmi3EnterEventMode(void *given)
{
    instance *s = (instance *)given;
    if (expect(s, CONTINUOUS, "fmi3EnterEventMode")) return ERROR;
    s->now.mode = EVENT;
    return OK;
}

EXPORT status fmi3EnterContinuousTimeMode(void *given)
{
    instance *s = (instance *)given;
    if (expect(s, EVENT, "fmi3EnterContinuousTimeMode")) return ERROR;
    s->now.mode = CONTINUOUS;
    return OK;
}

EXPORT status fmi3UpdateDiscreteStates(void *given, bool *again, bool *end, bool *nominals, bool *values, bool *has_next,
                                       double *next)
{
    instance *s = (instance *)given;
    double q[N_Q + 1], v[N_V + 1], left = 0.0;
    *again = *end = *nominals = *values = *has_next = false;
    *next = 0.0;
    if (expect(s, EVENT, "fmi3UpdateDiscreteStates")) return ERROR;
    if (!s->now.drifted) return OK;
    s->now.drifted = 0;
    memcpy(q, s->now.m + AT_Q, N_Q * sizeof(double));
    memcpy(v, s->now.m + AT_V, N_V * sizeof(double));
    if (project(s, &left) || !(left <= ENOUGH + 2.0 * OPEN_AT_START)) {
        memcpy(s->now.m + AT_Q, q, N_Q * sizeof(double));
        memcpy(s->now.m + AT_V, v, N_V * sizeof(double));
        return say(s, ERROR, "at t = %g s the loops cannot be closed; use a smaller tolerance", s->now.time);
    }
    *values = true;
    changed(s);
    return OK;
}

EXPORT status fmi3CompletedIntegratorStep(void *given, bool forward, bool *event, bool *end)
{
    instance *s = (instance *)given;
    (void)forward;
    *event = *end = false;
    if (expect(s, CONTINUOUS, "fmi3CompletedIntegratorStep")) return ERROR;
    s->now.drifted = CLOSES && !model_closing(s->now.m) && drift(s->now.m) > DRIFT;
    *event = s->now.drifted != 0;
    return OK;
}

EXPORT status fmi3SetTime(void *given, double time)
{
    instance *s = (instance *)given;
    if (expect(s, CONTINUOUS | EVENT, "fmi3SetTime")) return ERROR;
    s->now.time = time;
    changed(s);
    return OK;
}

EXPORT status fmi3SetContinuousStates(void *given, const double x[], size_t n)
{
    instance *s = (instance *)given;
    if (expect(s, CONTINUOUS, "fmi3SetContinuousStates")) return ERROR;
    if (n != N_Q + N_V) return say(s, ERROR, "fmi3SetContinuousStates: %zu numbers; expected %d", n, N_Q + N_V);
    if (!all_finite(x, N_Q + N_V)) return say(s, DISCARD, "fmi3SetContinuousStates: a number is not finite");
    memcpy(s->now.m + AT_Q, x, N_Q * sizeof(double));
    memcpy(s->now.m + AT_V, x + N_Q, N_V * sizeof(double));
    changed(s);
    return OK;
}

EXPORT status fmi3GetContinuousStates(void *given, double x[], size_t n)
{
    instance *s = (instance *)given;
    if (n != N_Q + N_V) return say(s, ERROR, "fmi3GetContinuousStates: %zu numbers; expected %d", n, N_Q + N_V);
    memcpy(x, s->now.m + AT_Q, N_Q * sizeof(double));
    memcpy(x + N_Q, s->now.m + AT_V, N_V * sizeof(double));
    return OK;
}

EXPORT status fmi3GetContinuousStateDerivatives(void *given, double x[], size_t n)
{
    instance *s = (instance *)given;
    if (n != N_Q + N_V)
        return say(s, ERROR, "fmi3GetContinuousStateDerivatives: %zu numbers; expected %d", n, N_Q + N_V);
    if (need_rates(s)) return DISCARD;
    memcpy(x, s->now.m + AT_RATES, (N_Q + N_V) * sizeof(double));
    return OK;
}

EXPORT status fmi3GetNominalsOfContinuousStates(void *given, double x[], size_t n)
{
    size_t k;
    (void)given;
    for (k = 0; k < n; k++) x[k] = 1.0;
    return OK;
}

EXPORT status fmi3GetNumberOfContinuousStates(void *s, size_t *n)
{
    (void)s;
    *n = N_Q + N_V;
    return OK;
}

EXPORT status fmi3GetNumberOfEventIndicators(void *s, size_t *n)
{
    (void)s;
    *n = 0;
    return OK;
}

EXPORT status fmi3GetEventIndicators(void *s, double x[], size_t n)
{
    (void)x;
    return none(s, n, "fmi3GetEventIndicators");
}

/* ---- Co-Simulation */

EXPORT status fmi3EnterStepMode(void *given)
{
    return expect((const instance *)given, STEPPING, "fmi3EnterStepMode");
}

/* One step of at most STEP towards `end`; the bits of model_step. */
static int step_towards(state *now, double end, double rounding)
{
    const double left = end - now->time;
    const int is_whole = left >= STEP - rounding;
    int bits;
    now->m[AT_T] = now->time;
    now->m[AT_H] = is_whole ? STEP : left;
    bits = model_step(now->m);
    if (bits) return bits;
    if (is_whole) {
        now->count++;
        now->time = now->origin + (double)now->count * STEP;
    } else {
        now->time = now->origin = end;
        now->count = 0;
    }
    return 0;
}

static status failed(instance *s, int bits)
{
    const double time = s->now.time, h = s->now.m[AT_H];
    s->now = s->before;
    return say(s, DISCARD, "the step of %g s at t = %g s failed: %s. The state is that of t = %g s", h, time,
               bits & NOT_CONVERGED ? "an equation of the step was not solved; shorter steps may be"
                                    : "a number is not finite or too large: a singular position, loops that cannot be "
                                      "kept closed, an angle beyond 1e6 rad, or a motion too fast for the step",
               s->now.time);
}

EXPORT status fmi3DoStep(void *given, double point, double size, bool forward, bool *event, bool *end, bool *early,
                         double *reached)
{
    instance *s = (instance *)given;
    const double goal = point + size, rounding = 1e-9 * STEP + 4.0 * DBL_EPSILON * fabs(goal);
    int bits = 0;
    (void)forward;
    *event = *end = *early = false;
    *reached = s->now.time;
    if (expect(s, STEPPING, "fmi3DoStep")) return ERROR;
    if (!is_finite(goal) || size <= 0.0) return say(s, ERROR, "communicationStepSize is %g; must be positive", size);
    if (fabs(point - s->now.time) > 1e-6 * STEP + 8.0 * DBL_EPSILON * fabs(point))
        return say(s, ERROR, "currentCommunicationPoint is %.17g; the state is that of t = %.17g s", point, s->now.time);
    s->before = s->now;
    while (!bits && goal - s->now.time > rounding) bits = step_towards(&s->now, goal, rounding);
    changed(s);
    s->now.m[AT_H] = bits & ~HALTED ? s->now.m[AT_H] : STEP;
    if (bits & HALTED) {
        *end = true;
        *early = s->may_return_early;
        *reached = s->now.time;
        (void)say(s, WARNING, "a limit or an event ends the simulation after t = %g s", s->now.time);
        return OK;
    }
    if (bits) {
        const status found = failed(s, bits);
        *reached = s->now.time;
        return found;
    }
    *reached = goal;
    return OK;
}

EXPORT status fmi3GetOutputDerivatives(void *s, const uint32_t r[], size_t n, const int32_t orders[], double values[],
                                       size_t m)
{
    (void)r, (void)orders, (void)values, (void)m;
    return n ? say((const instance *)s, ERROR, "fmi3GetOutputDerivatives is not supported; get the variables der(...)") : OK;
}

/* ---- what this unit does not have */

static status missing(void *s, const char *function)
{
    return say((const instance *)s, ERROR, "%s is not supported", function);
}

EXPORT status fmi3EnterConfigurationMode(void *s)
{
    return missing(s, "fmi3EnterConfigurationMode");
}

EXPORT status fmi3ExitConfigurationMode(void *s)
{
    return missing(s, "fmi3ExitConfigurationMode");
}

EXPORT status fmi3EvaluateDiscreteStates(void *s)
{
    (void)s;
    return OK;
}

EXPORT status fmi3ActivateModelPartition(void *s, uint32_t clock, double time)
{
    (void)clock, (void)time;
    return missing(s, "fmi3ActivateModelPartition");
}

EXPORT status fmi3GetNumberOfVariableDependencies(void *s, uint32_t r, size_t *n)
{
    (void)r, (void)n;
    return missing(s, "fmi3GetNumberOfVariableDependencies");
}

EXPORT status fmi3GetVariableDependencies(void *s, uint32_t r, size_t a[], uint32_t b[], size_t c[], int kinds[], size_t n)
{
    (void)r, (void)a, (void)b, (void)c, (void)kinds, (void)n;
    return missing(s, "fmi3GetVariableDependencies");
}

EXPORT status fmi3GetDirectionalDerivative(void *s, const uint32_t a[], size_t na, const uint32_t b[], size_t nb,
                                           const double x[], size_t nx, double y[], size_t ny)
{
    (void)a, (void)na, (void)b, (void)nb, (void)x, (void)nx, (void)y, (void)ny;
    return missing(s, "fmi3GetDirectionalDerivative");
}

EXPORT status fmi3GetAdjointDerivative(void *s, const uint32_t a[], size_t na, const uint32_t b[], size_t nb,
                                       const double x[], size_t nx, double y[], size_t ny)
{
    (void)a, (void)na, (void)b, (void)nb, (void)x, (void)nx, (void)y, (void)ny;
    return missing(s, "fmi3GetAdjointDerivative");
}

EXPORT status fmi3GetIntervalDecimal(void *s, const uint32_t r[], size_t n, double x[], int kinds[])
{
    (void)r, (void)x, (void)kinds;
    return none(s, n, "fmi3GetIntervalDecimal");
}

EXPORT status fmi3GetIntervalFraction(void *s, const uint32_t r[], size_t n, uint64_t a[], uint64_t b[], int kinds[])
{
    (void)r, (void)a, (void)b, (void)kinds;
    return none(s, n, "fmi3GetIntervalFraction");
}

EXPORT status fmi3GetShiftDecimal(void *s, const uint32_t r[], size_t n, double x[])
{
    (void)r, (void)x;
    return none(s, n, "fmi3GetShiftDecimal");
}

EXPORT status fmi3GetShiftFraction(void *s, const uint32_t r[], size_t n, uint64_t a[], uint64_t b[])
{
    (void)r, (void)a, (void)b;
    return none(s, n, "fmi3GetShiftFraction");
}

EXPORT status fmi3SetIntervalDecimal(void *s, const uint32_t r[], size_t n, const double x[])
{
    (void)r, (void)x;
    return none(s, n, "fmi3SetIntervalDecimal");
}

EXPORT status fmi3SetIntervalFraction(void *s, const uint32_t r[], size_t n, const uint64_t a[], const uint64_t b[])
{
    (void)r, (void)a, (void)b;
    return none(s, n, "fmi3SetIntervalFraction");
}

EXPORT status fmi3SetShiftDecimal(void *s, const uint32_t r[], size_t n, const double x[])
{
    (void)r, (void)x;
    return none(s, n, "fmi3SetShiftDecimal");
}

EXPORT status fmi3SetShiftFraction(void *s, const uint32_t r[], size_t n, const uint64_t a[], const uint64_t b[])
{
    (void)r, (void)a, (void)b;
    return none(s, n, "fmi3SetShiftFraction");
}

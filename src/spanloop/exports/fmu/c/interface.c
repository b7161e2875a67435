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

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
    return n ? say((const instance *)s, ERROR, "fmi3GetEventIndicators: there are none") : OK;
}

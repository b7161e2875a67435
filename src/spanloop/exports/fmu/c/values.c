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
    if (!s->now.exchange && s->now.mode & (STEPPING | TERMINATED))
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
    if (variables[reference].kind == POSITION) s->now.set_q[place - AT_Q] = 1;
    if (variables[reference].kind == VELOCITY) s->now.set_v[place - AT_SHOWN] = 1;
    s->now.m[variables[reference].kind == VELOCITY ? place - AT_SHOWN + AT_V : place] = value;
}

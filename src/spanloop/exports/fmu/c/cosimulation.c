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

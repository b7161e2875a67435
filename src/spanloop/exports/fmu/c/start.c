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
    if (stages == 1) bits = model_closing(m);
    if (bits) return say(s, ERROR, "the start: %s", reason(bits));
    if (stages == 1 && m[AT_CLOSING + N_Q + N_V] > FAR_OPEN + OPEN_AT_START)
        return say(s, ERROR, "the start: a loop is open by %.3g (rad, or of its length), more than %g. Set all q.* of the "
                   "loop to a closed position", m[AT_CLOSING + N_Q + N_V], FAR_OPEN);
    for (stage = 1; stage <= stages && !bits; stage++) {
        for (k = 0; k < N_P; k++) {
            const double from = at_start(AT_P + k);
            m[AT_P + k] = stage == stages ? p[k] : from + (p[k] - from) * (double)stage / (double)stages;
        }
        memcpy(m + AT_V, v, N_V * sizeof(double));
        bits = project(s, &left);
        if (!(left <= ENOUGH + 2.0 * OPEN_AT_START)) bits = 1; /* a later stage might close elsewhere */
    }
    memcpy(m + AT_P, p, N_P * sizeof(double));
    memcpy(m + AT_V, v, N_V * sizeof(double)); /* projected once, where q is in the end */
    bits = bits ? bits : model_closing(m);
    memcpy(m + AT_V, m + AT_CLOSING + N_Q, N_V * sizeof(double));
    if (bits || !all_finite(m + AT_Q, N_Q) || !all_finite(m + AT_V, N_V)) {
        memcpy(m + AT_Q, q, N_Q * sizeof(double));
        memcpy(m + AT_V, v, N_V * sizeof(double));
        return say(s, ERROR, "the start: the loops cannot be closed from here with these parameters. Set all q.* to a "
                   "closed position");
    }
    return report_change(s, q, v);
}

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

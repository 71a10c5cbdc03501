/* The types of collectives other than plain integers, float and double: how elements are made, and
 * how two are combined. No order of the combinations rounds the results. Included by
 * coll_reference.h. */
#ifndef COLL_NUMBERS_H
#define COLL_NUMBERS_H

#include <float.h>

UNCHECKED static inline int coll_is_plain(uint32_t type)
{
    return type <= LLCL_TYPE_U16;
}

UNCHECKED static inline int coll_is_pair(uint32_t type)
{
    return type >= LLCL_TYPE_F32_I32 && type <= LLCL_TYPE_LONG_DOUBLE_I32;
}

UNCHECKED static inline int coll_is_complex(uint32_t type)
{
    return type == LLCL_TYPE_COMPLEX_F32 || type == LLCL_TYPE_COMPLEX_F64;
}

/* Whether a type has an operation. */
UNCHECKED static inline int coll_has(uint32_t type, uint32_t op)
{
    int arithmetic = op == LLCL_OP_ADD || op == LLCL_OP_PROD;
    int order = op == LLCL_OP_MIN || op == LLCL_OP_MAX;
    int bits = op == LLCL_OP_AND || op == LLCL_OP_OR || op == LLCL_OP_XOR;
#if !defined(__x86_64__)
    if (type == LLCL_TYPE_LONG_DOUBLE_I32)
        return 0;
#endif
    if (coll_is_pair(type))
        return op == LLCL_OP_MINLOC || op == LLCL_OP_MAXLOC;
    if (coll_is_complex(type))
        return arithmetic;
    switch (type) {
    case LLCL_TYPE_BYTES: return 0;
    case LLCL_TYPE_BOOL: return bits;
    case LLCL_TYPE_F32: case LLCL_TYPE_F64: case LLCL_TYPE_F16: case LLCL_TYPE_BF16:
        return arithmetic || order;
    case LLCL_TYPE_LONG_DOUBLE:
#if defined(__x86_64__)
        return arithmetic || order;
#else
        return 0;
#endif
    default: return arithmetic || order || bits;
    }
}

/* coll_narrow() returns the bits of a number that both 16-bit formats can represent. coll_widen()
 * returns the number. */
UNCHECKED static inline uint16_t coll_narrow(uint32_t type, float number)
{
    uint32_t bits, exponent;
    memcpy(&bits, &number, sizeof bits);
    if (type == LLCL_TYPE_BF16)
        return (uint16_t)(bits >> 16);
    exponent = bits >> 23 & 0xff;
    return (uint16_t)((bits >> 16 & 0x8000) | (exponent ? (exponent - 112) << 10 | (bits >> 13 & 0x3ff) : 0));
}

UNCHECKED static inline float coll_widen(uint32_t type, uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16, exponent = half >> 10 & 0x1f;
    float number;
    if (type == LLCL_TYPE_F16)
        bits = (half & 0x8000u) << 16 | (exponent ? (exponent + 112) << 23 | (half & 0x3ffu) << 13 : 0);
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* A pair's value and index, without its padding. */
struct coll_pair {
    double value;
    int64_t index;
};

UNCHECKED static inline struct coll_pair coll_pair_of(uint32_t type, const void *element)
{
    const char *bytes = element;
    struct coll_pair pair = {0, 0};
    int32_t small;
    int64_t large;
    float real;
    int16_t tiny;
    long double extended;
    int wide = type == LLCL_TYPE_I64_I64 || type == LLCL_TYPE_F64_I64;
    size_t at = coll_width(type) / 2;
    memcpy(&pair.value, bytes, sizeof pair.value < at ? sizeof pair.value : at);
    if (type == LLCL_TYPE_F32_I32) {
        memcpy(&real, bytes, sizeof real);
        pair.value = real;
    } else if (type == LLCL_TYPE_I32_I32) {
        memcpy(&small, bytes, sizeof small);
        pair.value = small;
    } else if (type == LLCL_TYPE_I16_I32) {
        memcpy(&tiny, bytes, sizeof tiny);
        pair.value = tiny;
    } else if (type == LLCL_TYPE_LONG_DOUBLE_I32) {
        memcpy(&extended, bytes, sizeof extended);
        pair.value = (double)extended;
    } else if (type == LLCL_TYPE_I64_I32 || type == LLCL_TYPE_I64_I64) {
        memcpy(&large, bytes, sizeof large);
        pair.value = (double)large;
    }
    memcpy(&small, bytes + at, sizeof small);
    memcpy(&large, bytes + at, wide ? sizeof large : sizeof small);
    pair.index = wide ? large : small;
    return pair;
}

UNCHECKED static inline void coll_pair_store(uint32_t type, double value, int64_t index, void *element)
{
    char *bytes = element;
    int32_t small_value = (int32_t)value, small_index = (int32_t)index;
    int64_t large = (int64_t)value;
    int16_t tiny = (int16_t)((int64_t)value % 30000);
    float real = (float)value;
    long double extended = (long double)value;
    int wide = type == LLCL_TYPE_I64_I64 || type == LLCL_TYPE_F64_I64;
    size_t at = coll_width(type) / 2;
    memset(bytes, 0, 2 * at);
    switch (type) {
    case LLCL_TYPE_F32_I32: memcpy(bytes, &real, sizeof real); break;
    case LLCL_TYPE_I32_I32: memcpy(bytes, &small_value, sizeof small_value); break;
    case LLCL_TYPE_I64_I32: case LLCL_TYPE_I64_I64: memcpy(bytes, &large, sizeof large); break;
    case LLCL_TYPE_I16_I32: memcpy(bytes, &tiny, sizeof tiny); break;
    case LLCL_TYPE_LONG_DOUBLE_I32: /* 10 of the 16 bytes of x87's type have a meaning */
        memcpy(bytes, &extended, LDBL_MANT_DIG == 64 ? 10 : sizeof extended);
        break;
    default: memcpy(bytes, &value, sizeof value); break;
    }
    if (wide)
        memcpy(bytes + at, &index, sizeof index);
    else
        memcpy(bytes + at, &small_index, sizeof small_index);
}

/* Makes an element from a random number. */
UNCHECKED static inline void coll_number_element(uint32_t type, int factor, uint64_t raw, void *element)
{
    static const double values[] = {3, -7, 12, 3, 1000000, -7.0};
    double number = factor ? (raw % 3 ? 1.0 : raw % 2 ? -2.0 : 0.5) : (double)(raw % 33) - 16.0;
    double parts[2];
    float small[2];
    if (coll_is_pair(type)) { /* many values are equal */
        coll_pair_store(type, values[raw % 6], (int64_t)(raw >> 8) % 50 - 25, element);
        return;
    }
    /* No part of a power of 1 + 2i is 0. The sign of a 0 would depend on the order of
     * multiplications. */
    parts[0] = number;
    parts[1] = factor ? 2 * number : (double)(raw >> 8 & 31);
    small[0] = (float)parts[0];
    small[1] = (float)parts[1];
    switch (type) {
    case LLCL_TYPE_BOOL: *(unsigned char *)element = raw % 3 == 0; break;
    case LLCL_TYPE_F16: case LLCL_TYPE_BF16: {
        uint16_t half = coll_narrow(type, (float)number);
        memcpy(element, &half, sizeof half);
        break;
    }
    case LLCL_TYPE_COMPLEX_F32: memcpy(element, small, sizeof small); break;
    case LLCL_TYPE_COMPLEX_F64: memcpy(element, parts, sizeof parts); break;
    case LLCL_TYPE_LONG_DOUBLE: {
        long double wide = number;
        memset(element, 0, 16);
        memcpy(element, &wide, sizeof wide < 10 ? sizeof wide : 10);
        break;
    }
    default: { /* LLCL_TYPE_BYTES */
        uint64_t words[3];
        words[0] = raw;
        words[1] = coll_mix(raw);
        words[2] = coll_mix(raw + 1);
        memcpy(element, words, sizeof words);
        break;
    }
    }
}

UNCHECKED static inline double coll_combine_floats(uint32_t op, double left, double right)
{
    switch (op) {
    case LLCL_OP_ADD: return left + right;
    case LLCL_OP_PROD: return left * right;
    case LLCL_OP_MIN: return fmin(left, right);
    default: return fmax(left, right);
    }
}

UNCHECKED static inline void coll_complex_combine(uint32_t op, double left[2], const double right[2])
{
    double real = left[0] + right[0], imaginary = left[1] + right[1];
    if (op == LLCL_OP_PROD) {
        real = left[0] * right[0] - left[1] * right[1];
        imaginary = left[0] * right[1] + left[1] * right[0];
    }
    left[0] = real;
    left[1] = imaginary;
}

UNCHECKED static inline void coll_number_combine(uint32_t type, uint32_t op, void *left, const void *right)
{
    uint16_t half[2];
    unsigned char *bytes = left;
    const unsigned char *other = right;
    if (coll_is_pair(type)) {
        struct coll_pair a = coll_pair_of(type, left), b = coll_pair_of(type, right);
        int first = op == LLCL_OP_MINLOC ? b.value < a.value : b.value > a.value;
        if (first || (!(a.value < b.value) && !(a.value > b.value) && b.index < a.index))
            memcpy(left, right, coll_width(type));
        return;
    }
    switch (type) {
    case LLCL_TYPE_BOOL:
        *bytes = op == LLCL_OP_AND ? *bytes && *other : op == LLCL_OP_OR ? *bytes || *other : !*bytes != !*other;
        break;
    case LLCL_TYPE_F16: case LLCL_TYPE_BF16:
        memcpy(&half[0], left, 2);
        memcpy(&half[1], right, 2);
        half[0] = coll_narrow(type, (float)coll_combine_floats(op, coll_widen(type, half[0]),
                                                               coll_widen(type, half[1])));
        memcpy(left, &half[0], 2);
        break;
    case LLCL_TYPE_COMPLEX_F32: {
        float a[2], b[2];
        double x[2], y[2];
        memcpy(a, left, sizeof a);
        memcpy(b, right, sizeof b);
        x[0] = a[0], x[1] = a[1], y[0] = b[0], y[1] = b[1];
        coll_complex_combine(op, x, y);
        a[0] = (float)x[0], a[1] = (float)x[1];
        memcpy(left, a, sizeof a);
        break;
    }
    case LLCL_TYPE_COMPLEX_F64: {
        double x[2], y[2];
        memcpy(x, left, sizeof x);
        memcpy(y, right, sizeof y);
        coll_complex_combine(op, x, y);
        memcpy(left, x, sizeof x);
        break;
    }
    default: { /* LLCL_TYPE_LONG_DOUBLE; the numbers are exact in a double */
        long double x, y;
        memcpy(&x, left, sizeof x);
        memcpy(&y, right, sizeof y);
        x = coll_combine_floats(op, (double)x, (double)y);
        memset(left, 0, 16);
        memcpy(left, &x, sizeof x < 10 ? sizeof x : 10);
        break;
    }
    }
}

#endif

/* The result of an atomic operation on an old value, computed in plain C for each type. */
#ifndef ATOMIC_REFERENCE_H
#define ATOMIC_REFERENCE_H
#include "shared.h"

static const uint32_t all_types[] = {LLCL_TYPE_I32, LLCL_TYPE_U32, LLCL_TYPE_I64,
                                     LLCL_TYPE_U64, LLCL_TYPE_F32, LLCL_TYPE_F64,
                                     LLCL_TYPE_I8,  LLCL_TYPE_U8,  LLCL_TYPE_I16, LLCL_TYPE_U16};
static const uint32_t all_ops[] = {LLCL_OP_LOAD, LLCL_OP_STORE, LLCL_OP_SWAP, LLCL_OP_COMPARE_SWAP,
                                   LLCL_OP_ADD,  LLCL_OP_SUB,   LLCL_OP_AND,  LLCL_OP_OR,
                                   LLCL_OP_XOR,  LLCL_OP_MIN,   LLCL_OP_MAX,  LLCL_OP_PROD};
#define TYPES (sizeof all_types / sizeof all_types[0])
#define OPS (sizeof all_ops / sizeof all_ops[0])

static inline size_t type_size(uint32_t type)
{
    switch (type) {
    case LLCL_TYPE_I8: case LLCL_TYPE_U8: return 1;
    case LLCL_TYPE_I16: case LLCL_TYPE_U16: return 2;
    case LLCL_TYPE_I32: case LLCL_TYPE_U32: case LLCL_TYPE_F32: return 4;
    default: return 8;
    }
}

/* The bits of a number that belong to the type. */
static inline uint64_t low_bits(uint64_t bits, size_t size)
{
    return size == 8 ? bits : bits & ((UINT64_C(1) << 8 * size) - 1);
}

static inline int is_float(uint32_t type)
{
    return type == LLCL_TYPE_F32 || type == LLCL_TYPE_F64;
}

static inline int is_offered(uint32_t op, uint32_t type)
{
    return !is_float(type) || !(op == LLCL_OP_AND || op == LLCL_OP_OR || op == LLCL_OP_XOR);
}

static inline float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, 4);
    return value;
}

static inline double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline uint64_t bits_f32(float value)
{
    uint32_t low;
    memcpy(&low, &value, 4);
    return low;
}

static inline uint64_t bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static inline int less(uint32_t type, uint64_t a, uint64_t b)
{
    switch (type) {
    case LLCL_TYPE_I8: return (int8_t)(uint8_t)a < (int8_t)(uint8_t)b;
    case LLCL_TYPE_I16: return (int16_t)(uint16_t)a < (int16_t)(uint16_t)b;
    case LLCL_TYPE_I32: return (int32_t)(uint32_t)a < (int32_t)(uint32_t)b;
    case LLCL_TYPE_U32: return (uint32_t)a < (uint32_t)b;
    case LLCL_TYPE_I64: return (int64_t)a < (int64_t)b;
    case LLCL_TYPE_F32: return f32_of(a) < f32_of(b);
    case LLCL_TYPE_F64: return f64_of(a) < f64_of(b);
    default: return a < b;
    }
}

static inline uint64_t sum(uint32_t type, uint64_t a, uint64_t b, int minus)
{
    if (type == LLCL_TYPE_F32)
        return bits_f32(minus ? f32_of(a) - f32_of(b) : f32_of(a) + f32_of(b));
    if (type == LLCL_TYPE_F64)
        return bits_f64(minus ? f64_of(a) - f64_of(b) : f64_of(a) + f64_of(b));
    return minus ? a - b : a + b;
}

static inline uint64_t product(uint32_t type, uint64_t a, uint64_t b)
{
    if (type == LLCL_TYPE_F32)
        return bits_f32(f32_of(a) * f32_of(b));
    if (type == LLCL_TYPE_F64)
        return bits_f64(f64_of(a) * f64_of(b));
    return a * b;
}

static inline uint64_t reference(uint32_t op, uint32_t type, uint64_t old, uint64_t operand,
                                 uint64_t compare)
{
    uint64_t made = old;
    switch (op) {
    case LLCL_OP_STORE: case LLCL_OP_SWAP: made = operand; break;
    case LLCL_OP_COMPARE_SWAP: made = old == compare ? operand : old; break;
    case LLCL_OP_ADD: made = sum(type, old, operand, 0); break;
    case LLCL_OP_SUB: made = sum(type, old, operand, 1); break;
    case LLCL_OP_PROD: made = product(type, old, operand); break;
    case LLCL_OP_AND: made = old & operand; break;
    case LLCL_OP_OR: made = old | operand; break;
    case LLCL_OP_XOR: made = old ^ operand; break;
    case LLCL_OP_MIN: made = less(type, operand, old) ? operand : old; break;
    case LLCL_OP_MAX: made = less(type, old, operand) ? operand : old; break;
    default: break;
    }
    return low_bits(made, type_size(type));
}

/* Values at the edges of a type. NaN and negative zero are left out, because C does not define
 * their order. */
static inline size_t edge_values(uint32_t type, uint64_t *values)
{
    static const uint64_t words[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1,
                                     UINT64_C(0x123456789abcdef0), 0xffffffff,
                                     UINT64_C(0x100000000)};
    static const uint32_t halves[] = {0, 1, UINT32_MAX, 1u << 31, (1u << 31) - 1, 0x12345678, 0xffff};
    static const uint64_t bytes[] = {0, 1, 0xff, 0x80, 0x7f, 0x5c};
    static const uint64_t shorts[] = {0, 1, 0xffff, 0x8000, 0x7fff, 0x80, 0x1234};
    static const double reals[] = {0, 1, -1, 1.5, -2.25, 1e30, -1e30, 0.1, 16777216};
    size_t count = 0, i;
    if (is_float(type))
        for (i = 0; i < sizeof reals / sizeof reals[0]; i++)
            values[count++] = type == LLCL_TYPE_F32 ? bits_f32((float)reals[i]) : bits_f64(reals[i]);
    else if (type_size(type) == 1)
        for (i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
            values[count++] = bytes[i];
    else if (type_size(type) == 2)
        for (i = 0; i < sizeof shorts / sizeof shorts[0]; i++)
            values[count++] = shorts[i];
    else if (type_size(type) == 4)
        for (i = 0; i < sizeof halves / sizeof halves[0]; i++)
            values[count++] = halves[i];
    else
        for (i = 0; i < sizeof words / sizeof words[0]; i++)
            values[count++] = words[i];
    return count;
}

#endif

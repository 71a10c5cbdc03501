/* Memory kinds. The types are declared so that clients compile; the conduit offers host memory
 * only. */
#ifndef GASNET_MK_H
#define GASNET_MK_H
#include "gasnetex.h"

typedef enum { GEX_MK_CLASS_HOST, GEX_MK_CLASS_CUDA_UVA, GEX_MK_CLASS_HIP, GEX_MK_CLASS_ZE } gex_MK_Class_t;
typedef struct {
    uint64_t gex_flags;
    gex_MK_Class_t gex_class;
    union {
        struct {
            int gex_CUdevice;
        } gex_class_cuda_uva;
        struct {
            int gex_hipDevice;
        } gex_class_hip;
        struct {
            void *gex_zeDevice;
            void *gex_zeContext;
            uint32_t gex_zeMemoryOrdinal;
        } gex_class_ze;
    } gex_args;
} gex_MK_Create_args_t;

#endif

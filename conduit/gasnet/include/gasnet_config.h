/* Versions, limits and features of this conduit. See docs/gasnet.md. */
#ifndef GASNET_CONFIG_H
#define GASNET_CONFIG_H

#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) > 1
#error define one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR only
#endif

/* The release of GASNet whose interface this conduit implements. */
#define GASNET_RELEASE_VERSION_MAJOR 2025
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 0
#define GEX_SPEC_VERSION_MAJOR 0
#define GEX_SPEC_VERSION_MINOR 19
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR
#define GASNETT_SPEC_VERSION_MAJOR 1
#define GASNETT_SPEC_VERSION_MINOR 20

#define GASNET_CONDUIT_LLCL 1
#define GASNET_LLCL_CONDUIT 1
#define GASNET_CONDUIT_NAME LLCL
#define GASNET_CONDUIT_NAME_STR "LLCL"
#define GASNET_CORE_NAME LLCL
#define GASNET_CORE_NAME_STR "LLCL"
#define GASNET_CORE_VERSION 0.2
#define GASNET_CORE_VERSION_STR "0.2"
#define GASNET_EXTENDED_NAME LLCL
#define GASNET_EXTENDED_NAME_STR "LLCL"
#define GASNET_EXTENDED_VERSION 0.2
#define GASNET_EXTENDED_VERSION_STR "0.2"

#if defined(GASNET_SEQ)
#define GASNET_THREAD_MODEL_STR "SEQ"
#elif defined(GASNET_PARSYNC)
#define GASNET_THREAD_MODEL_STR "PARSYNC"
#elif defined(GASNET_PAR)
#define GASNET_THREAD_MODEL_STR "PAR"
#else
#define GASNET_THREAD_MODEL_STR "TOOLS"
#endif
#define GASNET_CONFIG_STRING \
    "RELEASE=2025.8.0,SPEC=0.19,CONDUIT=LLCL(LLCL-0.2/LLCL-0.2),THREADMODEL=" \
    GASNET_THREAD_MODEL_STR ",SEGMENT=FAST,PTR=64bit,CACHE_LINE=64,noalign,pshm,nodebug"

#define GASNET_SEGMENT_FAST 1
#define GASNET_ALIGNED_SEGMENTS 0
#define GASNET_PSHM 1
#define GASNET_NDEBUG 1

/* The most ranks of a team of libllcl. */
#define GASNET_MAXNODES 4095
/* The most endpoints of a rank, including the one of gex_Client_Init. */
#define GASNET_MAXEPS 16
#define GASNET_PAGESIZE 4096
#define GASNET_PAGESHIFT 12
#define GASNET_MAX_THREADS 256

/* gex_Client_Init takes NULL for argc and argv. */
#define GASNET_NULL_ARGV_OK 1

/* Handlers run on threads of the client only, when these poll or wait. */
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0

#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_EP 1
#define GASNET_SUPPORTS_TI_ENTRY 1
#define GASNET_SUPPORTS_TI_IS_REQ 1
#define GASNET_SUPPORTS_TI_IS_LONG 1
/* The dates of these calls in the specification. */
#define GASNET_SUPPORTS_AM_CANCEL 20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L

#endif

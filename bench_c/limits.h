/* What the machine gives with no library: measured by the `limits` program, and by every other benchmark in the same
   run, next to the library's own figure. A helper process plays the other side; between measurements it sleeps. */
#ifndef LLCL_LIMITS_H
#define LLCL_LIMITS_H

#include <stddef.h>
#include <sys/types.h>

typedef struct limits limits_t;

/* Call before llcl_init: the helper is forked and must not carry the library's threads' state.
   `bytes`: size of the buffers for copies and process_vm_readv. */
limits_t *limits_open(size_t bytes);
void limits_close(limits_t *limits);

/* All times in nanoseconds. `here` and `there` are processors (bench_pin); -1: not pinned. */

/* One way of one cache line that two processes write in turn. */
double limits_line(limits_t *limits, unsigned rounds, int here, int there);
/* One way through two lines, each written by one side: a request and its answer. */
double limits_mailbox(limits_t *limits, unsigned rounds, int here, int there);
/* Through a bare ring of slots (ring.h): one way of a ping-pong of 8 bytes; and time per message of a stream, up to 8 bytes in the
   slot, more copied into the slot's payload, which nobody reads. */
double limits_ring_way(limits_t *limits, unsigned rounds, int here, int there);
double limits_ring_message(limits_t *limits, size_t size, unsigned rounds, int here, int there);
/* Time per addition of one process while the other adds to the same word. */
double limits_contended_add(limits_t *limits, unsigned rounds, int here, int there);
double limits_lone_add(limits_t *limits, unsigned rounds);
/* futex_wake in this process until the sleeper in the other one runs; the sleeper has slept for `idle_us`. */
double limits_wake(limits_t *limits, unsigned idle_us, int here, int there);
/* memcpy, private to shared memory; process_vm_readv from the helper. NAN where the kernel refuses. */
double limits_memcpy(limits_t *limits, size_t size, unsigned rounds);
double limits_vm_read(limits_t *limits, size_t size, unsigned rounds);
/* The plain functions of plain.h on 8 bytes: which = 'w' write, 'r' read, 'f' fetch-add. */
double limits_plain(limits_t *limits, char which, unsigned rounds);
double limits_clock_gettime(unsigned rounds);
double limits_ticks(unsigned rounds);
double limits_system_call(unsigned rounds);
double limits_sched_yield(unsigned rounds);

/* One process_vm_readv (write = 0) or process_vm_writev; -1 with errno where it fails. */
ssize_t limits_vm_copy(pid_t process, void *here, void *there, size_t size, int write);

#endif

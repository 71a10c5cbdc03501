/* The limits of the machine without any library. The program `limits` measures them, and every
 * other benchmark does in the same run, next to its own figure. A helper process is the other side;
 * it sleeps between measurements. */
#ifndef LLCL_LIMITS_H
#define LLCL_LIMITS_H

#include <stddef.h>
#include <sys/types.h>

typedef struct limits limits_t;

/* Forks the helper, so it must be called before llcl_init starts threads. `bytes`: the size of the
 * buffers for copies and process_vm_readv. */
limits_t *limits_open(size_t bytes);
void limits_close(limits_t *limits);

/* All times are in nanoseconds. `here` and `there` are processors (bench_pin) of the two sides; -1:
 * not pinned. */

/* One way of one cache line that two processes write in turn. */
double limits_line(limits_t *limits, unsigned rounds, int here, int there);
/* One way through two lines, each written by one side: a request and its answer. */
double limits_mailbox(limits_t *limits, unsigned rounds, int here, int there);
/* Through a bare ring of slots (ring.h): one way of a ping-pong of 8 bytes, and the time per
 * message of a stream. Up to 8 bytes travel in the slot; more are copied into the slot's payload,
 * which the receiver does not read. */
double limits_ring_way(limits_t *limits, unsigned rounds, int here, int there);
double limits_ring_message(limits_t *limits, size_t size, unsigned rounds, int here, int there);
/* The time per message of 8 bytes that `threads` threads send, which share the ring: what one
 * fetch-add and one slot for each message cost with so many threads, or, with `in_turns`, what one
 * slot costs where only the thread sends that has the turn. They are not pinned. */
double limits_ring_shared(limits_t *limits, int threads, int in_turns, unsigned rounds);
/* Time per addition of one process while the other adds to the same word. */
double limits_contended_add(limits_t *limits, unsigned rounds, int here, int there);
double limits_lone_add(limits_t *limits, unsigned rounds);
/* From futex_wake in this process until the sleeper in the helper runs, which has slept for
 * `idle_us`. */
double limits_wake(limits_t *limits, unsigned idle_us, int here, int there);
/* memcpy from private to shared memory; process_vm_readv from the helper, NAN if the kernel refuses
 * it. */
double limits_memcpy(limits_t *limits, size_t size, unsigned rounds);
double limits_vm_read(limits_t *limits, size_t size, unsigned rounds);
/* The plain functions of plain.h on 8 bytes: which = 'w' write, 'r' read, 'f' fetch-add. */
double limits_plain(limits_t *limits, char which, unsigned rounds);
double limits_ticks(unsigned rounds);

/* One process_vm_readv (write = 0) or process_vm_writev. Returns -1 and sets errno if it fails. */
ssize_t limits_vm_copy(pid_t process, void *here, void *there, size_t size, int write);

#endif

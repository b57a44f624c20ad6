// Runs the threads of a CUDA launch on one CPU thread (see shim.py and cuda_on_cpu.h).
//
// The threads of a block are fibers: each runs until it has to wait for others at a barrier, a
// shuffle or a vote. Blocks run one after another. So there is no time at which two threads run,
// and nothing that depends on luck: what can vary is the order, which the launch chooses.
//
// One launch at a time per library. TG_TSAN and TG_ASAN tell which sanitizer watches the kernels;
// this file is never compiled with one, since its switches are what sanitizers cannot follow.
#define TG_RUNTIME 1
#include "cuda_on_cpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define TG_ASSEMBLY 1
#else
#define TG_ASSEMBLY 0
#include <ucontext.h>
#endif

#if TG_TSAN
extern "C" void* __tsan_create_fiber(unsigned int);
extern "C" void* __tsan_get_current_fiber();
extern "C" void __tsan_switch_to_fiber(void*, unsigned int);
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#else
static void __tsan_acquire(void*) {}
static void __tsan_release(void*) {}
#endif
#if TG_ASAN
extern "C" void __sanitizer_start_switch_fiber(void**, const void*, size_t);
extern "C" void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
extern "C" void __asan_poison_memory_region(const volatile void*, size_t);
extern "C" void __asan_unpoison_memory_region(const volatile void*, size_t);
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace tg {

static const int MOST_THREADS = 1024, WARP = 32;
static const size_t STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096;
static const size_t MOST_SHARED = 227 * 1024, CANARY = 1024;
static const int KEPT_FIBERS = 1;  // of a library between launches
static const int POISON = 0xff;  // bytes of it are a NaN in every float type

char dynamic_shared[MOST_SHARED + CANARY];

// -- fibers --------------------------------------------------------------------------------------

struct Fiber {
  char* stack;
  size_t bytes;
  void* pointer;   // the stack pointer, while it does not run
  void* watcher;   // the sanitizer's own account of it
  Fiber* next;     // of the unused ones
#if !TG_ASSEMBLY
  ucontext_t context;
#endif
};

static Fiber scheduler, *running = &scheduler, *unused;

#if TG_ASSEMBLY
// Keeps what a function has to keep for its caller, and goes on where `to` stopped.
extern "C" void tg_switch(void** from, void* to);
asm(".text\n.p2align 4\n.type tg_switch,@function\n.hidden tg_switch\n.globl tg_switch\n"
    "tg_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size tg_switch,.-tg_switch\n");
#endif

static void arrive() {
#if TG_ASAN
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(running->watcher, &bottom, &bytes);
  if (!scheduler.stack) scheduler.stack = (char*)bottom, scheduler.bytes = bytes;
#endif
}

static void switch_to(Fiber* to) {
  Fiber* from = running;
  running = to;
#if TG_TSAN
  // 1: being switched to orders nothing; only barriers do.
  __tsan_switch_to_fiber(to->watcher, 1);
#elif TG_ASAN
  __sanitizer_start_switch_fiber(&from->watcher, to->stack, to->bytes);
#endif
#if TG_ASSEMBLY
  tg_switch(&from->pointer, to->pointer);
#else
  swapcontext(&from->context, &to->context);
#endif
  arrive();
}

static Fiber* new_fiber() {
  Fiber* fiber = (Fiber*)calloc(1, sizeof(Fiber));
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* stack = fiber ? mmap(0, STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) : MAP_FAILED;
  if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE)) {
    fprintf(stderr, "no memory for the stack of a CUDA thread\n");
    abort();
  }
  fiber->stack = (char*)stack;
  fiber->bytes = STACK_BYTES;
#if TG_TSAN
  fiber->watcher = __tsan_create_fiber(0);
#endif
  return fiber;
}

// Lets `fiber` begin with `entry`, whatever it did before.
static void prepare(Fiber* fiber, void (*entry)()) {
#if TG_ASAN
  __asan_unpoison_memory_region(fiber->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
  fiber->watcher = 0;
#endif
#if TG_ASSEMBLY
  // tg_switch pops six registers and returns into `entry`, whose own return address is 0.
  void** top = (void**)(fiber->stack + STACK_BYTES) - 2;
  top[0] = (void*)entry;
  top[1] = 0;
  memset(top - 6, 0, 6 * sizeof(void*));
  fiber->pointer = top - 6;
#else
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = STACK_BYTES;
  fiber->context.uc_link = 0;
  makecontext(&fiber->context, entry, 0);
#endif
}

// -- threads -------------------------------------------------------------------------------------

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_OPERATION, AT_ACTIVE_MASK, FINISHED };

struct Thread {
  uint3 index;
  int number;
  State state;
  Site site;                               // of what it waits for
  unsigned int mask;                       // of the warp operation
  unsigned long long posted, published;    // two, since a fast lane posts again before all read
  bool predicate;
  unsigned int block_phase, warp_phase;
  Fiber* fiber;
};

static Thread threads[MOST_THREADS], *current;
static int thread_count;

// What the thread sanitizer takes for locks. Two of each: who leaves a barrier late must not seem
// to have waited for what others did after it.
static char begin_tag, end_tag, block_tag[2], warp_tag[2][MOST_THREADS / WARP];

struct Failure {
  char text[256];
  int line;  // 0 where there is none
  unsigned int block[3], thread[3];
};
static Failure* failure;
static bool failed;

// Keeps the first failure; `thread` is where it shows.
static void fail(const Thread* thread, int line, const char* format, ...) {
  if (failed) return;
  failed = true;
  va_list values;
  va_start(values, format);
  vsnprintf(failure->text, sizeof failure->text, format, values);
  va_end(values);
  failure->line = line;
  memcpy(failure->block, &blockIdx, sizeof failure->block);
  memcpy(failure->thread, &thread->index, sizeof failure->thread);
}

static void wait(State state, Site site) {
  current->state = state;
  current->site = site;
  switch_to(&scheduler);
}

// A failed thread never goes on: its launch is over.
[[noreturn]] static void give_up() {
  switch_to(&scheduler);
  abort();
}

static Thread* warp_of(const Thread* thread) { return threads + thread->number / WARP * WARP; }
int lane() { return current->number % WARP; }
int block_threads() { return thread_count; }

void trap(Site site) {
  fail(current, site.line, "__trap()");
  give_up();
}

void block_barrier(Site site) {
  char* tag = &block_tag[current->block_phase++ & 1];
  __tsan_release(tag);
  wait(AT_BLOCK_BARRIER, site);
  __tsan_acquire(tag);
}

int block_count(bool predicate, Site site) {
  current->predicate = predicate;
  block_barrier(site);
  int count = 0;
  for (int i = 0; i < thread_count; ++i) count += threads[i].predicate;
  block_barrier(site);  // all have counted, and predicates may change
  return count;
}

static void warp_operation(unsigned int mask, unsigned long long posted, Site site) {
  if (!(mask >> lane() & 1)) {
    fail(current, site.line, "lane %d is not in the mask 0x%08x that it gives", lane(), mask);
    give_up();
  }
  char* tag = &warp_tag[current->warp_phase++ & 1][current->number / WARP];
  current->mask = mask;
  current->posted = posted;
  __tsan_release(tag);
  wait(AT_WARP_OPERATION, site);
  __tsan_acquire(tag);
}

void warp_barrier(unsigned int mask, Site site) { warp_operation(mask, 0, site); }

unsigned long long warp_exchange(unsigned int mask, unsigned long long bits, int source,
                                 Site site) {
  warp_operation(mask, bits, site);
  if (source < 0 || source >= WARP || !(mask >> source & 1)) {
    fail(current, site.line, "a shuffle reads lane %d, which is not in the mask 0x%08x", source,
         mask);
    give_up();
  }
  return warp_of(current)[source].published;
}

unsigned int warp_ballot(unsigned int mask, bool predicate, Site site) {
  warp_operation(mask, predicate, site);
  unsigned int ballot = 0;
  for (int i = 0; i < WARP; ++i)
    if (mask >> i & 1 && warp_of(current)[i].published) ballot |= 1u << i;
  return ballot;
}

unsigned int active_mask(Site site) {
  wait(AT_ACTIVE_MASK, site);
  return current->mask;
}

// -- the schedule --------------------------------------------------------------------------------

enum Order { FORWARD, BACKWARD, SHUFFLED };

struct Launch {
  unsigned int grid[3], block[3];
  unsigned int shared_bytes;
  int order;
  unsigned int seed;
  void** arguments;
};

static const Kernel* kernel;
static const Launch* launch;
static unsigned int random_state;

static unsigned int random_below(unsigned int limit) {
  random_state = random_state * 1664525u + 1013904223u;
  return (unsigned int)((unsigned long long)(random_state >> 8) * limit >> 24);
}

static void fill_order(int* order, int count) {
  for (int i = 0; i < count; ++i) order[i] = launch->order == BACKWARD ? count - 1 - i : i;
  if (launch->order != SHUFFLED) return;
  for (int i = count - 1; i > 0; --i) {
    const int other = random_below(i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

static void thread_entry() {
  arrive();
  __tsan_acquire(&begin_tag);
  kernel->run(launch->arguments);
  __tsan_release(&end_tag);
  current->state = FINISHED;
  switch_to(&scheduler);
  abort();
}

// Threads that never wait follow each other on one stack. The thread sanitizer tells threads apart
// by their fibers, so there each keeps its own.
static Fiber* take_fiber(int number) {
#if TG_TSAN
  static Fiber* own[MOST_THREADS];
  if (!own[number]) own[number] = new_fiber();
  return own[number];
#else
  (void)number;
  Fiber* fiber = unused ? unused : new_fiber();
  unused = fiber->next;
  return fiber;
#endif
}

static void put_back(Thread* thread) {
#if !TG_TSAN
  thread->fiber->next = unused;
  unused = thread->fiber;
#endif
  thread->fiber = 0;
}

// A process has room for some ten thousands of mappings, and every library has its own fibers.
static void drop_fibers() {
#if !TG_TSAN && !TG_ASAN
  int kept = 0;
  for (Fiber** at = &unused; *at;) {
    if (kept < KEPT_FIBERS) {
      ++kept;
      at = &(*at)->next;
      continue;
    }
    Fiber* gone = *at;
    *at = gone->next;
    munmap(gone->stack, STACK_BYTES);
    free(gone);
  }
#endif
}

static void let_run(Thread* thread) {
  if (!thread->fiber) {
    thread->fiber = take_fiber(thread->number);
    prepare(thread->fiber, thread_entry);
  }
  current = thread;
  threadIdx = thread->index;
  switch_to(thread->fiber);
  if (thread->state == FINISHED) put_back(thread);
}

static bool same(Site a, Site b) { return a.line == b.line && a.id == b.id; }

static bool all_wait_like(const Thread* warp, int lanes, const Thread& one) {
  for (int i = 0; i < WARP; ++i) {
    if (!(one.mask >> i & 1)) continue;
    const Thread& other = warp[i];
    if (i >= lanes || other.state != AT_WARP_OPERATION) return false;
    if (other.mask != one.mask || !same(other.site, one.site)) return false;
  }
  return true;
}

// Lets those go on whose whole mask has arrived.
static bool release_operations(Thread* warp, int lanes) {
  bool released = false;
  for (int i = 0; i < lanes; ++i) {
    if (warp[i].state != AT_WARP_OPERATION || !all_wait_like(warp, lanes, warp[i])) continue;
    const unsigned int mask = warp[i].mask;
    for (int j = 0; j < lanes; ++j) {
      if (!(mask >> j & 1)) continue;
      warp[j].published = warp[j].posted;
      warp[j].state = READY;
    }
    released = true;
  }
  return released;
}

// The active lanes are those that ask at the same place while no other can run.
static bool release_active_masks(Thread* warp, int lanes) {
  bool released = false;
  for (int i = 0; i < lanes; ++i) {
    if (warp[i].state != AT_ACTIVE_MASK) continue;
    unsigned int mask = 0;
    for (int j = i; j < lanes; ++j)
      if (warp[j].state == AT_ACTIVE_MASK && same(warp[j].site, warp[i].site)) mask |= 1u << j;
    for (int j = i; j < lanes; ++j)
      if (mask >> j & 1) {
        warp[j].mask = mask;
        warp[j].state = READY;
      }
    released = true;
  }
  return released;
}

static void report_stuck_warp(const Thread* warp, int lanes) {
  for (int i = 0; i < lanes; ++i) {
    const Thread& one = warp[i];
    if (one.state != AT_WARP_OPERATION) continue;
    unsigned int missing = one.mask;
    for (int j = 0; j < lanes; ++j)
      if (warp[j].state == AT_WARP_OPERATION && warp[j].mask == one.mask &&
          same(warp[j].site, one.site))
        missing &= ~(1u << j);
    fail(&one, one.site.line,
         "a shuffle, vote or __syncwarp with mask 0x%08x waits for lanes 0x%08x, which have "
         "finished, wait elsewhere or do not exist",
         one.mask, missing);
    return;
  }
}

// Until every lane has finished or waits for the block.
static void run_warp(Thread* warp, int lanes) {
  int order[WARP];
  do {
    fill_order(order, lanes);
    for (int i = 0; i < lanes; ++i) {
      if (warp[order[i]].state != READY) continue;
      let_run(&warp[order[i]]);
      if (failed) return;
    }
  } while (release_operations(warp, lanes) || release_active_masks(warp, lanes));
  report_stuck_warp(warp, lanes);
}

// All threads wait for the block or have finished: lets them go on; false when the block is over.
static bool pass_block_barrier() {
  const Thread *waiting = 0, *finished = 0;
  int waiting_count = 0;
  for (int i = 0; i < thread_count; ++i) {
    const Thread& one = threads[i];
    if (one.state == FINISHED) {
      finished = &one;
      continue;
    }
    ++waiting_count;
    if (!waiting) waiting = &one;
    if (same(one.site, waiting->site)) continue;
    fail(&one, one.site.line,
         "divergent __syncthreads(): thread %d waits here, thread %d at line %d", one.number,
         waiting->number, waiting->site.line);
    return false;
  }
  if (!waiting) return false;
  if (finished) {
    fail(waiting, waiting->site.line,
         "__syncthreads() is reached by %d threads, but %d of the block have finished",
         waiting_count, thread_count - waiting_count);
    return false;
  }
  for (int i = 0; i < thread_count; ++i) threads[i].state = READY;
  return true;
}

static void begin_block() {
  memset(dynamic_shared, POISON, launch->shared_bytes + CANARY);
#if TG_ASAN
  __asan_poison_memory_region(dynamic_shared + launch->shared_bytes,
                              sizeof dynamic_shared - launch->shared_bytes);
#endif
  if (kernel->shared) memset(kernel->shared, POISON, kernel->shared_end - kernel->shared);
  for (int i = 0; i < thread_count; ++i) {
    const unsigned int x = i % blockDim.x, rest = i / blockDim.x;
    threads[i] = Thread();
    threads[i].index = {x, rest % blockDim.y, rest / blockDim.y};
    threads[i].number = i;
  }
  __tsan_release(&begin_tag);
}

static void end_block() {
  __tsan_acquire(&end_tag);
#if TG_ASAN
  __asan_unpoison_memory_region(dynamic_shared, sizeof dynamic_shared);
#endif
  for (size_t i = 0; i < CANARY && !failed; ++i)
    if ((unsigned char)dynamic_shared[launch->shared_bytes + i] != POISON)
      fail(threads, 0, "the block wrote behind its %u bytes of dynamic shared memory",
           launch->shared_bytes);
}

static void run_block() {
  begin_block();
  const int warps = (thread_count + WARP - 1) / WARP;
  int order[MOST_THREADS / WARP];
  do {
    fill_order(order, warps);
    for (int i = 0; i < warps && !failed; ++i) {
      const int first = order[i] * WARP, left = thread_count - first;
      run_warp(threads + first, left < WARP ? left : WARP);
    }
  } while (!failed && pass_block_barrier());
  end_block();
  for (int i = 0; i < thread_count; ++i)
    if (threads[i].fiber) put_back(&threads[i]);
}

static unsigned long long common_divisor(unsigned long long a, unsigned long long b) {
  while (b) {
    const unsigned long long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Shuffled blocks take steps of a fixed length that has no common divisor with their number.
static unsigned long long block_at(unsigned long long i, unsigned long long count,
                                   unsigned long long step) {
  if (launch->order == FORWARD) return i;
  if (launch->order == BACKWARD) return count - 1 - i;
  return (i * step + launch->seed) % count;
}

}  // namespace tg

// Runs a launch whose sizes shim.py has checked; 0, or 1 where it has filled `failure`.
extern "C" __attribute__((visibility("default"))) int tg_launch(const tg::Kernel* kernel,
                                                                const tg::Launch* launch,
                                                                tg::Failure* failure) {
  tg::kernel = kernel;
  tg::launch = launch;
  tg::failure = failure;
  tg::failed = false;
  tg::random_state = launch->seed * 2654435761u + 1;
#if TG_TSAN
  tg::scheduler.watcher = __tsan_get_current_fiber();
#endif
  gridDim = dim3(launch->grid[0], launch->grid[1], launch->grid[2]);
  blockDim = dim3(launch->block[0], launch->block[1], launch->block[2]);
  tg::thread_count = blockDim.x * blockDim.y * blockDim.z;
  const unsigned long long count = (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
  unsigned long long step = count * 5 / 8 + 1;
  while (tg::common_divisor(step, count) != 1) ++step;
  for (unsigned long long i = 0; i < count && !tg::failed; ++i) {
    const unsigned long long number = tg::block_at(i, count, step), rest = number / gridDim.x;
    blockIdx = {(unsigned int)(number % gridDim.x), (unsigned int)(rest % gridDim.y),
                (unsigned int)(rest / gridDim.y)};
    tg::run_block();
  }
  tg::drop_fibers();
  return tg::failed;
}

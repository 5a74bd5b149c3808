#include "allocator/base/thread_slots.hpp"

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include <pthread.h>

#include "tests/support/catch.hpp"
#include "tests/support/threads.hpp"

using namespace cistern;

namespace {

std::string trail;  // what the hooks of one thread wrote; read after it was joined

template <char kLetter>
void write(void*) noexcept {
  trail += kLetter;
}

std::atomic<int> made{0}, gone{0};

struct Counted {
  Counted() { ++made; }
  ~Counted() { ++gone; }
  int value = 0;
};

// Made before the slot, so its destructor runs after anything made later in the same thread.
struct UsesItsSlotLate {
  ~UsesItsSlotLate() { seen = ThreadSlot<Counted>::mine().value; }
  int touched = 0;
  static inline int seen = -1;
};

}  // namespace

TEST_CASE("hooks run when the thread ends, last in first out", "[slots]") {
  trail.clear();
  std::thread([] {
    atThreadExit(write<'a'>, nullptr);
    atThreadExit(write<'b'>, nullptr);
    CHECK(trail.empty());
  }).join();
  CHECK(trail == "ba");
}

TEST_CASE("a hook that is registered by a hook runs too", "[slots]") {
  trail.clear();
  std::thread([] {
    atThreadExit(write<'z'>, nullptr);
    atThreadExit([](void*) noexcept { atThreadExit(write<'n'>, nullptr); }, nullptr);
  }).join();
  CHECK(trail == "nz");
}

TEST_CASE("a hook gets what it was registered with", "[slots]") {
  int value = 0;
  std::thread([&] {
    atThreadExit([](void* what) noexcept { *static_cast<int*>(what) = 5; }, &value);
  }).join();
  CHECK(value == 5);
}

TEST_CASE("each thread has a slot of its own, which goes with it", "[slots]") {
  made = gone = 0;
  test::onThreads(8, [&](std::size_t index) {
    const int t = int(index);
    ThreadSlot<Counted>::mine().value = t;
    for (int i = 0; i < 100; ++i) {
      if (ThreadSlot<Counted>::mine().value != t) std::abort();
    }
  });
  CHECK(made == 8);
  CHECK(gone == 8);
  CHECK(ThreadSlot<Counted>::find() == nullptr);  // this thread never asked
}

TEST_CASE("a slot outlives the thread's own thread_local objects", "[slots]") {
  made = gone = 0;
  std::thread([] {
    thread_local UsesItsSlotLate late;
    late.touched = 1;
    ThreadSlot<Counted>::mine().value = 42;
  }).join();
  CHECK(UsesItsSlotLate::seen == 42);
  CHECK(made == 1);
  CHECK(gone == 1);
}

// As another library's end-of-thread hook may.
TEST_CASE("a slot that is used after the thread's slots went is made afresh and goes too",
          "[slots]") {
  made = gone = 0;
  pthread_key_t key{};
  const auto use_slot = [](void*) { ThreadSlot<Counted>::mine().value = 1; };
  REQUIRE(pthread_key_create(&key, use_slot) == 0);
  std::thread([&] {
    ThreadSlot<Counted>::mine().value = 1;
    REQUIRE(pthread_setspecific(key, &key) == 0);
  }).join();
  pthread_key_delete(key);
  CHECK(made == 2);  // the key is younger than ours, so its hook comes later
  CHECK(gone == 2);
}

// mimalloc, loaded while the program runs and kept apart from it: a program that is linked to it
// gets its malloc replaced, and would then measure mimalloc twice.
#include <dlfcn.h>

#include "bench/peers/roster.hpp"

namespace cistern::bench {
namespace {

struct Functions {
  void* (*allocate)(std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  bool complete() const { return allocate != nullptr && free != nullptr; }
};

Functions load() {
  for (const char* name : {"libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"}) {
    void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    return {reinterpret_cast<void* (*)(std::size_t)>(::dlsym(library, "mi_malloc")),
            reinterpret_cast<void (*)(void*)>(::dlsym(library, "mi_free"))};
  }
  return {};
}

class MimallocPeer final : public Peer {
 public:
  explicit MimallocPeer(Functions functions) : functions_(functions) {}
  void* allocate(std::size_t bytes, Stream /*stream*/) override {
    return functions_.allocate(bytes);
  }
  void free(void* block, Stream /*stream*/) override { functions_.free(block); }

 private:
  Functions functions_;
};

}  // namespace

void addMimalloc(Roster& roster) {
  const Functions functions = load();
  if (!functions.complete()) {
    roster.left_out.emplace_back("mimalloc: libmimalloc.so is not installed");
    return;
  }
  roster.peers.push_back(
      {.name = "mimalloc", .family = Family::kHost, .room = hostRoom(), .open = [functions] {
         return std::make_unique<MimallocPeer>(functions);
       }});
}

}  // namespace cistern::bench

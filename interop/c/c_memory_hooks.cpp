// Hooks for memory that comes and goes.
#include "allocator/hooks/hooked_memory.hpp"
#include "interop/c/objects.hpp"
#include "interop/python_stacks/interpreter_lock.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace {

cistern_memory_notice_t noticeOf(const MemoryNotice& from) {
  cistern_memory_notice_t notice{};
  notice.number = from.number;
  notice.address = toPointer(from.address);
  notice.bytes = from.bytes;
  notice.stream = toPointer(Address(from.stream.raw));
  notice.pool_uuid = from.pool.uuid;
  notice.pool_uid = from.pool.uid;
  notice.unmapping = from.change == MemoryChange::kUnmapping;
  notice.on_host = from.location == Location::kHost;
  notice.in_pages = from.in_pages;
  notice.imported = from.imported;
  notice.was_there = from.was_there;
  return notice;
}

// A hook of Python's needs the interpreter's lock, which PyTorch holds in many a request.
void waitWithoutInterpreter(std::atomic<std::uint32_t>& turns, std::uint32_t seen) {
  const python::WithoutInterpreterLock without;
  turns.wait(seen);
}

}  // namespace

cistern_status_t cistern_memory_hook_attach(cistern_allocator_t allocator,
                                            cistern_memory_hook_function_t hook, void* context,
                                            cistern_memory_hook_t* out) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    requireGiven(out, "out");
    if (hook == nullptr) throw Failure(CISTERN_INVALID_ARGUMENT, "hook is null");
    MemoryHooks::waitBy(&waitWithoutInterpreter);
    auto object = std::make_unique<MemoryHookObject>(*use);
    object->attach([hook, context](const MemoryNotice& of) {
      const cistern_memory_notice_t notice = noticeOf(of);
      hook(context, &notice);
    });
    *out = handleOf<cistern_memory_hook_t>(HandleTable<MemoryHookObject>::add(std::move(object)));
  });
}

cistern_status_t cistern_memory_hook_detach(cistern_memory_hook_t hook) {
  return guarded([&] {
    const Word handle = wordOf(hook);
    if (abandonForked<MemoryHookObject>(handle)) return;
    if (!Use<MemoryHookObject>(handle)->detach())
      throw Failure(CISTERN_INVALID_HANDLE, "the hook is just being detached");
    if (HandleTable<MemoryHookObject>::remove(handle) == nullptr)
      refuseHandle(handle, Kind::kMemoryHook);
  });
}

// The stream-ordered pool that the device takes from is the program's to choose: Cistern stands in
// for the default one alone.
#include <initializer_list>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

// Whether the driver is asked for stream-ordered memory.
bool isDrivers() {
  const unsigned long long before = calls(gpu::kMallocAsync);
  Memory memory = nullptr;
  EXPECT(gpu::mallocAsync(&memory, 1000, nullptr) == 0);
  const bool asked = calls(gpu::kMallocAsync) != before;
  EXPECT(gpu::freeAsync(memory, nullptr) == 0);
  return asked || !served();
}

using Set = int (*)(gpu::Pool);

void setAndSetBack(Set set) {
  const gpu::Pool mine = gpu::makePool();
  EXPECT(set(mine) == 0);
  EXPECT(isDrivers());
  EXPECT(set(gpu::defaultPool()) == 0);
  EXPECT(isDrivers() != served());
  EXPECT(gpu::destroyPool(mine) == 0);
}

// A pool that was current and is no more leaves the default one.
void setAndDestroy(Set set) {
  const gpu::Pool mine = gpu::makePool();
  EXPECT(set(mine) == 0);
  EXPECT(gpu::destroyPool(mine) == 0);
  EXPECT(isDrivers() != served());
}

void current() {
  gpu::begin();
  EXPECT(gpu::free(allocated()) == 0);
  EXPECT(isDrivers() != served());
  for (const Set set : {gpu::setPool, gpu::setPoolOfMemory}) {
    setAndSetBack(set);
    setAndDestroy(set);
  }
  EXPECT(gpu::setPool(nullptr) != 0);
  EXPECT(isDrivers() != served());
}

// The default pool's memory is to be used by another device, which Cistern's is not. Its own device
// may use it in any case.
void access() {
  gpu::begin();
  EXPECT(gpu::letDeviceUse(gpu::makePool(), 1) == 0);
  EXPECT(gpu::letDeviceUse(gpu::defaultPool(), 0) == 0);
  EXPECT(isDrivers() != served());
  EXPECT(gpu::letDeviceUse(gpu::defaultPool(), 1) == 0);
  EXPECT(isDrivers());
}

const Case kCases[] = {{"current", current}, {"access", access}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }

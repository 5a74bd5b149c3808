// One side of two programs that share memory by a handle, which whoever starts them carries from
// the one to the other. They may be of two users, or in two namespaces.
//
//   give   prints a handle, and ends when its standard input does. BECOMES is a user that it
//   becomes
//          on the way, SHARES says whether it shares "before" or "after" that
//   open   opens HANDLE (in the environment), and prints the code, or what lies there; with
//   DISTANCE
//          also what lies so far behind it
//   reuse  prints whether a block has what the one before it in its place had
//
// A giver that has a handle prints as well how far behind the block another one lies.
#include <array>
#include <cstdio>
#include <string>

#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

using Handle = gpu::IpcHandle;
constexpr unsigned kWord = 0x600d, kBeside = 0xbe51de;

void becomeAnother() {
  const auto user = unsigned(number("BECOMES"));
  if (user == 0) return;
  EXPECT(setgid(user) == 0);
  EXPECT(setuid(user) == 0);
}

void give() {
  gpu::begin();
  const char* const shares = std::getenv("SHARES");
  const bool after = shares != nullptr && std::string(shares) == "after";
  if (after) becomeAnother();
  Memory const memory = allocated(), beside = allocated();
  EXPECT(gpu::write(memory, &kWord, sizeof kWord) == 0);
  EXPECT(gpu::write(beside, &kBeside, sizeof kBeside) == 0);
  Handle handle{};
  const int code = gpu::getHandle(&handle, memory);
  if (!after) becomeAnother();
  std::array<unsigned char, sizeof handle> bytes;
  std::memcpy(bytes.data(), &handle, sizeof handle);
  if (code != 0) std::printf("code %d", code);
  for (const unsigned char byte : bytes) {
    if (code == 0) std::printf("%02x", unsigned(byte));
  }
  std::printf(" %lld\n", static_cast<long long>(beside - memory));
  EXPECT(std::fflush(stdout) == 0);
  char none = 0;
  EXPECT(::read(0, &none, 1) == 0);
  unsigned word = 0;
  EXPECT(gpu::read(&word, memory, sizeof word) == 0);
  EXPECT(word == kWord);
}

Handle handleIn(const std::string& text) {
  std::array<unsigned char, sizeof(Handle)> bytes{};
  for (std::size_t i = 0; i < bytes.size() && 2 * i + 1 < text.size(); ++i)
    bytes[i] = static_cast<unsigned char>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  Handle handle;
  std::memcpy(&handle, bytes.data(), bytes.size());
  return handle;
}

void open() {
  gpu::begin();
  const char* const text = std::getenv("HANDLE");
  Memory memory = nullptr;
  const int code = gpu::openHandle(&memory, handleIn(text == nullptr ? "" : text));
  unsigned word = 0;
  if (code == 0) EXPECT(gpu::read(&word, memory, sizeof word) == 0);
  if (code == 0 && number("DISTANCE") != 0) {
    unsigned beside = 0;
    EXPECT(gpu::read(&beside, memory + number("DISTANCE"), sizeof beside) == 0);
    std::printf("%s ", beside == kBeside ? "beside" : "other");
  }
  std::printf("%s %d\n", code == 0 && word == kWord ? "opened" : "refused", code);
}

void reuse() {
  gpu::begin();
  Memory const memory = allocated();
  EXPECT(gpu::write(memory, &kWord, sizeof kWord) == 0);
  EXPECT(gpu::free(memory) == 0);
  unsigned word = 0;
  Memory const again = allocated();
  EXPECT(gpu::read(&word, again, sizeof word) == 0);
  std::printf("%s\n", again == memory && word == kWord ? "as it was" : "other");
}

const Case kCases[] = {{"give", give}, {"open", open}, {"reuse", reuse}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }

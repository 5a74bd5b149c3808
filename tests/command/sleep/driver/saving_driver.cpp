// A libcuda.so.1 that only saves processes, for `cistern sleep`. The folder that FAKE_SAVING_DRIVER
// names stands for the machine: a file <pid> has the state of that process, without which it has no
// CUDA; `calls` gets a line for each call; `plan` has lines: a call, its error or 0, and how many
// milliseconds it takes.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

enum Code { kSuccess = 0, kInvalidValue = 1, kIllegalState = 401 };
enum State { kRunning, kLocked, kSaved, kFailed };

std::string file(const std::string& name) {
  const char* const folder = std::getenv("FAKE_SAVING_DRIVER");
  return std::string(folder != nullptr ? folder : ".") + "/" + name;
}

int stateOf(int pid) {
  int state = -1;
  std::ifstream(file(std::to_string(pid))) >> state;
  return state;
}

/// What the plan has for the call; waits as long as it says.
int planned(const std::string& call) {
  std::ifstream plan(file("plan"));
  std::string name;
  for (int code = 0, wait = 0; plan >> name >> code >> wait;) {
    if (name != call) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    return code;
  }
  return kSuccess;
}

[[maybe_unused]] int change(const std::string& call, int pid, State from, State to) {
  std::ofstream(file("calls"), std::ios::app) << call << ' ' << pid << std::endl;
  if (const int code = planned(call); code != kSuccess) return code;
  const int state = stateOf(pid);
  if (state < 0) return kInvalidValue;
  if (state != from) return kIllegalState;
  std::ofstream(file(std::to_string(pid))) << int(to) << std::endl;
  return kSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) {
  constexpr int kNoDevice = 100;
  return std::getenv("CUDA_VISIBLE_DEVICES") != nullptr ? kNoDevice : planned("init");
}

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return kSuccess;
}

int cuGetErrorName(int code, const char** name) {
  static thread_local std::string text;
  text = "CUDA_ERROR_" + std::to_string(code);
  *name = text.c_str();
  return kSuccess;
}

#ifndef FAKE_OLD_DRIVER
int cuCheckpointProcessGetState(int pid, int* state) {
  *state = stateOf(pid);
  return *state < 0 ? kInvalidValue : kSuccess;
}
int cuCheckpointProcessLock(int pid, void* arguments) {
  if (*static_cast<unsigned*>(arguments) == 0) return kInvalidValue;  // it would wait without end
  return change("lock", pid, kRunning, kLocked);
}
int cuCheckpointProcessCheckpoint(int pid, void*) { return change("save", pid, kLocked, kSaved); }
int cuCheckpointProcessRestore(int pid, void*) { return change("restore", pid, kSaved, kLocked); }
int cuCheckpointProcessUnlock(int pid, void*) { return change("unlock", pid, kLocked, kRunning); }
#endif

}  // extern "C"
#pragma GCC visibility pop

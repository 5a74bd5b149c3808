// A program that gives up rights between two rounds of work, as a daemon or a sandbox does.
#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

void rounds() {
  for (int i = 0; i < 100; ++i) {
    Memory const memory = allocated(kBytes << i % 5);
    launch(nullptr, memory);
    EXPECT(gpu::free(memory) == 0);
  }
}

// On a thread of its own too, which has to begin with what is left.
void work() {
  rounds();
  const gpu::Thread own = gpu::thisThread();
  std::thread([own] {
    gpu::takeOver(own);
    rounds();
  }).join();
  EXPECT(gpu::races() == 0);
}

/// Work, then less rights, then work again; memory of before is freed after it.
template <class Drop>
void workAround(Drop drop) {
  gpu::begin();
  work();
  Memory const kept = allocated();
  drop();
  work();
  EXPECT(gpu::free(kept) == 0);
  // LONG: more than one part of a trace.
  for (int i = 0; i < 20'000 && number("LONG") != 0; ++i) EXPECT(gpu::free(allocated()) == 0);
  std::vector<Memory> all;
  for (int i = 0; i < 64; ++i) all.push_back(allocated(3 * kBytes));
  for (Memory const memory : all) EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::synchronize() == 0);
}

void user() {
  workAround([] {
    EXPECT(setgid(4711) == 0);
    EXPECT(setuid(4711) == 0);
  });
}

void root() {
  workAround([] {
    EXPECT(chroot(std::getenv("ROOT")) == 0);
    EXPECT(chdir("/") == 0);
  });
}

void noNewRights() {
  workAround([] { EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); });
}

void noCapabilities() {
  workAround([] {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[2] = {};
    EXPECT(syscall(SYS_capset, &head, none) == 0);
  });
}

/// From now on the calls fail with EPERM, as in a sandbox.
void deny(const std::vector<unsigned>& calls) {
  std::vector<sock_filter> rules = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(rules.size()), rules.data()};
  EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
}

const std::vector<unsigned> kForFiles = {SYS_open, SYS_openat, SYS_fallocate, SYS_ftruncate};
const std::vector<unsigned> kForSockets = {SYS_socket, SYS_bind, SYS_connect};

void noFiles() {
  workAround([] { deny(kForFiles); });
}

// What would need a socket is refused, and the memory works all the same.
void noSockets() {
  workAround([] {
    deny(kForSockets);
    Memory const memory = allocated();
    gpu::IpcHandle handle{};
    EXPECT(gpu::getHandle(&handle, memory) == (served() ? 801 : 0));
    EXPECT(gpu::free(memory) == 0);
  });
}

/// The rest of the arguments run without these calls from their start, or without the one of a
/// number.
void run(char** program, const std::string& without) {
  if (without == "sockets") {
    deny(kForSockets);
  } else if (without == "room") {
    deny({SYS_fallocate, SYS_ftruncate});
  } else {
    deny({unsigned(std::stoul(without))});
  }
  execv(program[0], program);
  _exit(127);
}

void none() {
  workAround([] {});
}

const Case kCases[] = {{"none", none},
                       {"user", user},
                       {"root", root},
                       {"no_new_rights", noNewRights},
                       {"no_capabilities", noCapabilities},
                       {"no_files", noFiles},
                       {"no_sockets", noSockets}};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "without") run(argv + 3, argv[2]);
  return runCase(kCases, argc, argv);
}

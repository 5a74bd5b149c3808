// Puts a whole process to sleep, and wakes it: the order of the steps, and what is undone when one
// of them fails.
#pragma once

#include <chrono>
#include <string>

#include "cistern/error.hpp"
#include "interop/command/sleep/ask_to_empty.hpp"
#include "interop/command/sleep/named_process.hpp"
#include "interop/command/sleep/saving_driver.hpp"

namespace cistern::command {

/// A call of the driver did not return in time. Its thread is still in it, so this command has to
/// end without waiting for threads.
class DriverStuck : public Error {
 public:
  using Error::Error;
};

/// Throws Error unless the driver can put the process to sleep now: it uses CUDA, and runs.
void requireAwake(const SavingDriver& driver, const NamedProcess& process);
/// Throws Error unless the driver can wake the process now: it sleeps, or a command that has ended
/// has left it locked.
void requireAsleep(const SavingDriver& driver, const NamedProcess& process);

/// The process empties its caches, is locked, and is saved to host memory. Returns what happened,
/// in lines. If anything fails before the end, or a signal asks this command to end, the process
/// goes on, and this throws Error, or DriverStuck. `most` bounds the whole.
std::string putToSleep(const SavingDriver& driver, const NamedProcess& process,
                       std::chrono::milliseconds most);
/// The process is restored and unlocked. Returns what happened, in lines. If a GPU has less free
/// memory than the process had there, or the driver cannot restore it, it sleeps on, and this
/// throws Error, or DriverStuck.
std::string wake(const SavingDriver& driver, const NamedProcess& process,
                 std::chrono::milliseconds most);

}  // namespace cistern::command

// The processes that pages are given to, and taken from: those of the same user.
#pragma once

namespace cistern::sharing {

/// Whether the process at the other end of the unix socket is this user's. The kernel says who
/// that was when it connected, or began to listen. False for the overflow user: to a user namespace
/// all users that it does not know seem to be that one.
bool isOurUser(int socket) noexcept;

/// Whether this process's user can be told from others: it is not the overflow user.
bool userIsKnown() noexcept;

}  // namespace cistern::sharing

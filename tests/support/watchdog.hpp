// Ends a test case that hangs: a test program that is killed from outside tells of nothing.
#pragma once

namespace cistern::test {

/// From now on a case of this program that takes a quarter of an hour is reported by its name, and
/// ends the program. Not in a child of fork.
void watchCases();

}  // namespace cistern::test

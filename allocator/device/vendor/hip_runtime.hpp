// HIP's runtime, found when it is first called and never linked: a program that is linked to
// libamdhip64 does not start on a machine without ROCm.
//
// For each function of hip_functions.hpp there is an object of that name in this namespace, which
// calls what the library has by it. So `hipMalloc(…)` here is cistern::hip::hipMalloc: the name
// hides the header's, and is no symbol that a program's own HIP could meet. A call that is not in
// the list is the header's function, and does not link.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <hip/hip_runtime_api.h>

#include "allocator/device/vendor/hip_functions.hpp"

namespace cistern::hip {

// The macros of the list are in two steps: what the first is given, the preprocessor has expanded.
#define CISTERN_HIP_NUMBER_(name) kNumberOf_##name,
#define CISTERN_HIP_NUMBER(name) CISTERN_HIP_NUMBER_(name)
#define CISTERN_HIP_NUMBER_AS(name, type) CISTERN_HIP_NUMBER(name)

enum FunctionNumber : std::size_t {
  CISTERN_HIP_FUNCTIONS(CISTERN_HIP_NUMBER, CISTERN_HIP_NUMBER_AS) kFunctionCount
};

/// The function in the library; null when the library does not have it, or there is no library.
void* functionAt(FunctionNumber number);

/// What a call answers whose function is null: hipErrorNoDevice without a library; else a code of
/// our own that says which function is missing. Only errorCode, errorName and errorText read it.
hipError_t answerWithout(FunctionNumber number);

/// The vendor's code: a missing function is "not supported".
int errorCode(hipError_t error);
const char* errorName(hipError_t error);
/// Names the function that is missing, and the library that lacks it.
std::string errorText(hipError_t error);

/// Why there is no device: no library, and where it was looked for; or a library that shows none.
const char* noDeviceText();

template <class Type>
struct Function;

template <class Answer, class... Arguments>
struct Function<Answer(Arguments...)> {
  using Type = Answer(Arguments...);
  FunctionNumber number;

  Answer operator()(Arguments... arguments) const {
    if (void* const function = functionAt(number); function != nullptr) {
      return reinterpret_cast<Answer (*)(Arguments...)>(function)(arguments...);
    }
    if constexpr (std::is_same_v<Answer, hipError_t>) {
      return answerWithout(number);
    } else {
      return "";
    }
  }
};

#define CISTERN_HIP_OBJECT(name, type) inline constexpr Function<type> name{kNumberOf_##name};
#define CISTERN_HIP_OBJECT_OF_(name) CISTERN_HIP_OBJECT(name, decltype(::name))
#define CISTERN_HIP_OBJECT_OF(name) CISTERN_HIP_OBJECT_OF_(name)

CISTERN_HIP_FUNCTIONS(CISTERN_HIP_OBJECT_OF, CISTERN_HIP_OBJECT)

}  // namespace cistern::hip

// HIP's runtime, found at its first call and never linked. A program that is linked to libamdhip64
// does not start on a machine without ROCm.
//
// Each function of hip_functions.hpp has an object of that name in this namespace, which calls the
// library's function. So `hipMalloc(…)` here is cistern::hip::hipMalloc. The name hides the
// header's, and is no symbol that could clash with a program's own HIP. A call that is not in the
// list is the header's function, and does not link.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <hip/hip_runtime_api.h>

#include "allocator/device/vendor/hip_functions.hpp"

namespace cistern::hip {

// The macros of the list have two steps: the preprocessor has expanded the first one's argument.
#define CISTERN_HIP_NUMBER_(name) kNumberOf_##name,
#define CISTERN_HIP_NUMBER(name) CISTERN_HIP_NUMBER_(name)
#define CISTERN_HIP_NUMBER_AS(name, type) CISTERN_HIP_NUMBER(name)

enum FunctionNumber : std::size_t {
  CISTERN_HIP_FUNCTIONS(CISTERN_HIP_NUMBER, CISTERN_HIP_NUMBER_AS) kFunctionCount
};

/// The function in the library; null when the library does not have it, or without a library.
void* functionAt(FunctionNumber number);

/// The result of a call whose function is null. Without a library it is hipErrorNoDevice; else a
/// code of our own that identifies the missing function. Only errorCode, errorName and errorText
/// read it.
hipError_t answerWithout(FunctionNumber number);

/// The vendor's code: a missing function is "not supported".
int errorCode(hipError_t error);
const char* errorName(hipError_t error);
/// Names the function that is missing, and the library that lacks it.
std::string errorText(hipError_t error);

/// The reason for having no device: no library, and the places searched; or a library that shows
/// none.
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

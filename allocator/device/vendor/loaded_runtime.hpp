// A vendor's runtime, found at its first call and never linked. A program that is linked to a
// shared runtime does not start on a machine without it. HIP's is always loaded, CUDA's in a build
// with CISTERN_CUDA_RUNTIME=loaded.
//
// Each function of cuda_functions.hpp or hip_functions.hpp has an object of that name in the
// vendor's namespace, which calls the library's function. So `hipMalloc(…)` there is
// cistern::hip::hipMalloc. The name hides the header's, and is no symbol that could clash with a
// program's own runtime. A call that is not in the list is the header's function, and does not
// link.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "allocator/device/vendor/loaded_library.hpp"
#include "allocator/device/vendor/runtime_functions.hpp"

namespace cistern::GPU_NAMESPACE {

// The macros of the list have two steps: the preprocessor has expanded the first one's argument.
#define CISTERN_NUMBER_(name) kNumberOf_##name,
#define CISTERN_NUMBER(name) CISTERN_NUMBER_(name)
#define CISTERN_NUMBER_AS(name, type) CISTERN_NUMBER(name)

enum FunctionNumber : std::size_t {
  CISTERN_RUNTIME_FUNCTIONS(CISTERN_NUMBER, CISTERN_NUMBER_AS) kFunctionCount
};

/// The function in the library; null when the library does not have it, or without a library.
void* functionAt(FunctionNumber number);

/// The result of a call whose function is null. Without a library it is "no device"; else a code of
/// our own that identifies the missing function. Only errorCode, errorName and errorText read it.
GPU(Error_t) answerWithout(FunctionNumber number);

/// The vendor's code: a missing function is "not supported".
int errorCode(GPU(Error_t) error);
const char* errorName(GPU(Error_t) error);
/// Names the function that is missing, and the library that lacks it.
std::string errorText(GPU(Error_t) error);

/// The reason for having no device: no library, and the places searched; or a library that shows
/// none.
const char* noDeviceText();

/// The file of the library and its version; empty without a library.
std::string runtimeText();

// ---- What each vendor says of its library: cuda_library.cpp, hip_library.cpp
// ---------------------

LibrarySearch librarySearch();
/// The name in the library of a function of the list: it may depend on the library's version.
const char* symbolOf(const char* name, void* library);
/// "12.8"; empty when the library does not tell.
std::string versionText(void* library);
/// How a message begins that no device is here: "no usable NVIDIA GPU: ".
extern const char* const kNoDevice;
/// How it goes on when the library shows none.
extern const char* const kNoDriver;

// ---- The functions
// -------------------------------------------------------------------------------

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
    if constexpr (std::is_same_v<Answer, GPU(Error_t)>) {
      return answerWithout(number);
    } else {
      return "";
    }
  }
};

#define CISTERN_OBJECT(name, type) inline constexpr Function<type> name{kNumberOf_##name};
#define CISTERN_OBJECT_OF_(name) CISTERN_OBJECT(name, decltype(::name))
#define CISTERN_OBJECT_OF(name) CISTERN_OBJECT_OF_(name)

CISTERN_RUNTIME_FUNCTIONS(CISTERN_OBJECT_OF, CISTERN_OBJECT)

}  // namespace cistern::GPU_NAMESPACE

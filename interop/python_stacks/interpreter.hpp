// The functions of CPython that read frames, found in the running process. Their signatures have
// been the same since Python 3.9.
#pragma once

#include <dlfcn.h>

namespace cistern::python {

struct Object;       ///< PyObject
struct Frame;        ///< PyFrameObject
struct ThreadState;  ///< PyThreadState

/// PyMethodDef
struct Method {
  const char* name;
  Object* (*function)(Object* self, Object* arguments);
  int flags;
  const char* text;
};
constexpr int kNoArguments = 4;  ///< METH_NOARGS

/// Invariant: after find() every pointer but lasti is set.
struct Interpreter {
  int (*initialized)();
  ThreadState* (*own_state)();
  int (*ensure)();
  void (*release)(int);
  int (*holds_lock)();
  Frame* (*frame)(ThreadState*);
  Frame* (*back)(Frame*);
  Object* (*code)(Frame*);
  int (*lasti)(Frame*);  ///< since 3.11
  int (*line)(Frame*);
  int (*line_of)(Object* code, int lasti);
  void (*take)(Object*);
  void (*drop)(Object*);
  Object* (*attribute)(Object*, const char*);
  const char* (*text)(Object*);
  void (*fetch_error)(Object**, Object**, Object**);
  void (*restore_error)(Object*, Object*, Object*);
  Object* (*import)(const char*);
  Object* (*function)(Method*, Object* self, Object* module);
  Object* (*call)(Object*, ...);
  ThreadState* (*save)();
  void (*restore)(ThreadState*);
  Object* none;

  /// Whether the process has an interpreter with all of these.
  bool find() {
    const bool found =
        set(initialized, "Py_IsInitialized") && set(own_state, "PyGILState_GetThisThreadState") &&
        set(ensure, "PyGILState_Ensure") && set(release, "PyGILState_Release") &&
        set(holds_lock, "PyGILState_Check") && set(frame, "PyThreadState_GetFrame") &&
        set(back, "PyFrame_GetBack") && set(code, "PyFrame_GetCode") &&
        set(line, "PyFrame_GetLineNumber") && set(line_of, "PyCode_Addr2Line") &&
        set(take, "Py_IncRef") && set(drop, "Py_DecRef") &&
        set(attribute, "PyObject_GetAttrString") && set(text, "PyUnicode_AsUTF8") &&
        set(fetch_error, "PyErr_Fetch") && set(restore_error, "PyErr_Restore") &&
        set(import, "PyImport_ImportModule") && set(function, "PyCFunction_NewEx") &&
        set(call, "PyObject_CallFunctionObjArgs") && set(save, "PyEval_SaveThread") &&
        set(restore, "PyEval_RestoreThread");
    set(lasti, "PyFrame_GetLasti");
    none = static_cast<Object*>(dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
    return found && none != nullptr;
  }

  void leave(Frame* held) const { drop(reinterpret_cast<Object*>(held)); }

 private:
  template <class Function>
  static bool set(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    return to != nullptr;
  }
};

}  // namespace cistern::python

#pragma once

#include <dlfcn.h>

namespace hortator::machine {

/// A shared library that is loaded as long as the object lives, if it exists.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* file) : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}
  ~LoadedLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  /// Calls a function that returns 0 for success; the arguments have exactly the types of its parameters. False if the
  /// function does not exist or fails.
  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    auto* const function = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    return function != nullptr && reinterpret_cast<int (*)(Arguments...)>(function)(arguments...) == 0;
  }

 private:
  void* handle_;
};

}  // namespace hortator::machine

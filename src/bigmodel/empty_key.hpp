#pragma once

#include <c10/core/DispatchKey.h>

namespace hortator::bigmodel {

/// The dispatch key under which constructions without memory see the calls of their thread. A key has one kernel for
/// all operators in a process, so that no other part of the library may take it; LibTorch itself leaves it alone.
constexpr auto empty_key = c10::DispatchKey::DeferredInit;

}  // namespace hortator::bigmodel

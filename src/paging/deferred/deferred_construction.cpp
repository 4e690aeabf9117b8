#include <hortator/bigmodel/deferred_construction.hpp>

#include "paging/deferred/construction_scope.hpp"

namespace hortator {

class DeferredConstruction::Scope {
 private:
  paging::ConstructionScope scope_{paging::Recording::Order::as_written};
};

DeferredConstruction::DeferredConstruction() : scope_(std::make_unique<Scope>()) {}
DeferredConstruction::~DeferredConstruction() = default;

}  // namespace hortator

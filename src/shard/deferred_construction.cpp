#include <hortator/deferred_construction.hpp>

#include "shard/construction_scope.hpp"

namespace hortator {

class DeferredConstruction::Scope {
 private:
  shard::ConstructionScope scope_{shard::Recording::Order::as_written};
};

DeferredConstruction::DeferredConstruction() : scope_(std::make_unique<Scope>()) {}
DeferredConstruction::~DeferredConstruction() = default;

}  // namespace hortator

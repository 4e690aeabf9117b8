#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace hortator::interception {

enum class Access {
  read,        ///< a provider may give it rounded values
  read_cast,   ///< the operator reads it only to cast it to the type of autocast on the storage's device
  read_exact,  ///< the values as they are kept
  write
};
enum class Content { keep, drop };

/// Provides the bytes of storages while an operator uses them. Called from any thread.
class StorageProvider {
 public:
  virtual ~StorageProvider() = default;

  /// Called before an operator uses storage `number`: returns with it present and pinned, or throws.
  virtual void enter(int number, Access access) = 0;
  /// Called when the operator is done (only after enter()).
  virtual void leave(int number) noexcept = 0;
  /// Called when another provider takes over the storage: gives up the claim. With Content::keep the storage then holds
  /// its bytes in memory of its own. Throws UsageError if this provider does not give it up.
  virtual void hand_over(int number, Content content) = 0;
};

struct Claim {
  StorageProvider* provider = nullptr;  ///< null if the storage is not claimed
  int number = 0;                       ///< the provider's number of the storage
  std::shared_ptr<void> keeps_alive = {};

  explicit operator bool() const { return provider != nullptr; }
};

/// Throws UsageError if the storage is claimed already.
void claim(const at::Storage& storage, Claim claim);
void disclaim(const at::Storage& storage) noexcept;

Claim claim_of(const at::Tensor& tensor);
Claim claim_of(const at::Storage& storage);

}  // namespace hortator::interception

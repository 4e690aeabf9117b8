#pragma once

namespace hortator::paging {

enum class Access { read, write };
enum class Content { keep, drop };

/// Whoever sees to it that storages hold their bytes while an operator uses them. Called from any thread.
class StorageProvider {
 public:
  virtual ~StorageProvider() = default;

  /// An operator is about to use storage `number`: returns with it present and pinned, or throws.
  virtual void enter(int number, Access access) = 0;
  /// The operator is over (after enter() only).
  virtual void leave(int number) noexcept = 0;
  /// Somebody else will look after the storage from now on. With Content::keep it then holds its bytes in memory of its
  /// own; its claim is given up. Throws UsageError if this custodian does not give it up.
  virtual void hand_over(int number, Content content) = 0;
};

}  // namespace hortator::paging

// Takes the events of a PyTorch snapshot out of its pickle while that is read. A dict with an
// "action" becomes a SnapshotEntry, and its values are freed. Its list of frames becomes the number
// of a stack, for entries that share the list. An entry that is not as PyTorch writes it stays, so
// that a complaint can name its place.
#pragma once

#include <deque>
#include <unordered_map>

#include "interop/trace/pickle_machine.hpp"
#include "interop/trace/torch_fields.hpp"
#include "interop/trace/torch_snapshot.hpp"

namespace cistern::trace {

class EntryReader final : public ItemTaker {
 public:
  /// `file` must outlive it.
  EntryReader(const std::string& file, Detail detail) : fields_(file), detail_(detail) {}

  bool take(PickleDocument& document, ValueId list, ValueId dict) override;

  /// The entries that were taken out of a list, in order; none the second time.
  std::deque<SnapshotEntry> entriesOf(ValueId list);

  /// The entry that a dict is. Throws TraceError at the fields' place.
  SnapshotEntry read(PickleDocument& document, ValueId dict);
  /// The number of the stack that the dict has under "frames", or 0. The list of frames is taken.
  std::uint32_t stackOf(PickleDocument& document, ValueId dict);
  /// The number of the pool that the dict has as a pair of ints under `key`, or 0.
  std::uint32_t poolOf(const PickleDocument& document, ValueId dict, std::string_view key);
  /// The newest dict of a block's "history", where PyTorch before 2.1 has its stack and the bytes
  /// that were asked for. None if it has none.
  std::optional<ValueId> newestOf(const PickleDocument& document, ValueId block);
  std::uint32_t streamOf(const PickleDocument& document, ValueId dict);

  SnapshotFields& fields() { return fields_; }
  SnapshotTables finishTables() { return tables_.finish(); }
  /// For people: what is odd in the file.
  std::vector<std::string> notes() const;

 private:
  std::uint32_t frameOf(const PickleDocument& document, ValueId dict);
  std::uint32_t stackOfFrames(const PickleDocument& document, ValueId list);
  std::int64_t timeOf(const PickleDocument& document, ValueId dict);
  std::uint32_t labelOf(const PickleDocument& document, ValueId dict);

  SnapshotFields fields_;
  const Detail detail_;
  TableFiller tables_;
  std::size_t charged_ = 0;  // of their bytes, those that the document counts
  std::unordered_map<ValueId, std::deque<SnapshotEntry>> taken_;  // by list
  ValueId last_list_ = 0;
  std::deque<SnapshotEntry>* last_ = nullptr;             // of last_list_
  std::unordered_map<ValueId, std::uint32_t> frame_ids_;  // dicts of frames that were read
};

}  // namespace cistern::trace

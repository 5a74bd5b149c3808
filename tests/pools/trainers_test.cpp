// Programs of the shapes that trainers have, on several streams, without a word to the allocator
// about which stream uses what: sharded parameters (FSDP2), gradient buckets (DDP), pipeline
// stages, loaders that do call recordStream, and activations that are copied to the host on a
// stream of their own.
#include "allocator/base/sabotage.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/untold_program.hpp"

namespace cistern::test {
namespace {

using Tensor = UntoldProgram::Tensor;
using Tensors = std::vector<Tensor>;

std::vector<Tensor*> all(Tensors& tensors) {
  std::vector<Tensor*> pointers;
  for (Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

/// What the trainers share: a device, streams, random sizes and times, and a step that repeats.
class Trainer {
 public:
  Trainer(std::uint64_t seed, std::string_view conf)
      : random_(seed), rig_(conf, config()), program_(rig_.sim(), rig_.allocator) {
    for (Stream* stream : {&compute_, &second_, &third_, &fourth_}) {
      *stream = rig_.stream();
      rig_.allocator.registerStream(*stream);
    }
    layers_ = 3 + random_() % 12;
    unit_ns_ = std::uint64_t{1'000} << random_() % 12;
  }
  virtual ~Trainer() = default;
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      scale_ = 1 + random_() % 8;
      step();
      if (random_() % 2) rig_.sim().synchronizeStream(compute_).orThrow();
    }
    program_.finish();
  }
  std::size_t races() {
    const std::size_t found = rig_.sim().races().size();
    rig_.sim().clearRaces();
    return found;
  }

 protected:
  virtual void step() = 0;
  static sim::SimConfig config() { return simOf(80 * kGiB); }
  std::uint64_t bytes(std::uint64_t mib) { return mib * scale_ * kMiB / 2 + random_() % kMiB; }
  Tensor made(std::uint64_t size, Stream on, const char* by = "make") {
    Tensor tensor = program_.make(size, on);
    program_.use(on, by, {}, {&tensor}, unit_ns_);
    return tensor;
  }
  void drop(Tensors& tensors) {
    for (Tensor& tensor : tensors) program_.drop(tensor);
    tensors.clear();
  }
  /// A layer's work: temporaries, and what it returns.
  Tensor layer(Tensor& in, Tensors& weights) {
    Tensors temporaries;
    for (std::uint64_t i = 0; i < 4; ++i) {
      temporaries.push_back(program_.make(bytes(2 + i * 7 % 5), compute_));
      std::vector<Tensor*> reads = all(weights);
      reads.push_back(&in);
      program_.use(compute_, "layer", reads, {&temporaries.back()}, unit_ns_);
    }
    Tensor out = program_.make(bytes(3), compute_);
    program_.use(compute_, "layer's end", all(temporaries), {&out}, unit_ns_);
    drop(temporaries);
    return out;
  }

  std::mt19937_64 random_;
  PoolRig rig_;
  UntoldProgram program_;
  Stream compute_{}, second_{}, third_{}, fourth_{};
  std::size_t layers_ = 0;
  std::uint64_t unit_ns_ = 0, scale_ = 1;
};

/// FSDP2: parameters are copied in on one stream, gathered on another, and used on a third;
/// gradients are reduced on a fourth. The optimiser reads them on the third, and they are freed
/// before their stream waits for that.
class Sharded final : public Trainer {
 public:
  using Trainer::Trainer;

 private:
  void step() override {
    if (shards_.empty()) {
      for (std::size_t i = 0; i < layers_; ++i) shards_.push_back(made(24 * kMiB, compute_));
    }
    Tensors activations, gradients;
    activations.push_back(made(bytes(3), compute_));
    for (std::size_t i = 0; i < layers_; ++i) {
      Tensors weights = gathered(i);
      activations.push_back(layer(activations.back(), weights));
      drop(weights);
    }
    Tensor upstream = made(bytes(3), compute_);
    for (std::size_t i = layers_; i-- > 0;) {
      Tensors weights = gathered(i);
      Tensor again = layer(activations[i], weights);  // recomputed
      Tensor local = program_.make(48 * kMiB, compute_);
      program_.use(compute_, "backward", {&again, &upstream}, {&local}, unit_ns_);
      program_.drop(again);
      program_.drop(activations.back());
      activations.pop_back();
      drop(weights);
      gradients.push_back(program_.make(24 * kMiB, fourth_));
      program_.use(fourth_, "reduce-scatter", {&local}, {&gradients.back()}, unit_ns_);
      program_.drop(local);
    }
    for (std::size_t i = 0; i < layers_; ++i)
      program_.use(compute_, "adam", {&gradients[i]}, {&shards_[layers_ - 1 - i]}, 4 * unit_ns_);
    drop(gradients);  // while the optimiser may read them
    drop(activations);
    program_.drop(upstream);
  }
  Tensors gathered(std::size_t i) {
    Tensor flat = program_.make(48 * kMiB, second_);
    program_.use(second_, "copy in", {&shards_[i]}, {&flat}, unit_ns_);
    program_.use(third_, "all-gather", {}, {&flat}, unit_ns_);
    Tensors weights;
    for (int part = 0; part < 6; ++part) weights.push_back(program_.make(8 * kMiB, compute_));
    program_.use(compute_, "copy out", {&flat}, all(weights), unit_ns_);
    program_.drop(flat);
    return weights;
  }
  Tensors shards_;
};

/// DDP: buckets of gradients are reduced on a stream that allocates nothing.
class Buckets final : public Trainer {
 public:
  using Trainer::Trainer;

 private:
  void step() override {
    Tensors none, activations, buckets;
    activations.push_back(made(bytes(4), compute_));
    for (std::size_t i = 0; i < layers_; ++i) activations.push_back(layer(activations[i], none));
    for (std::size_t i = layers_; i-- > 0;) {
      buckets.push_back(program_.make(bytes(5), compute_));
      program_.use(compute_, "backward", {&activations[i]}, {&buckets.back()}, unit_ns_);
      program_.use(second_, "all-reduce", {}, {&buckets.back()}, 3 * unit_ns_);
      program_.drop(activations.back());
      activations.pop_back();
      if (random_() % 3 == 0) drop(buckets);  // the next use of their stream waits
    }
    drop(buckets);
    drop(activations);
  }
};

/// Stages of a pipeline on streams of their own, with a stream that receives and one that sends.
class Pipeline final : public Trainer {
 public:
  using Trainer::Trainer;

 private:
  void step() override {
    Tensors none, sent;
    for (std::size_t i = 0; i < layers_; ++i) {
      Tensor received = made(bytes(4), second_, "receive");
      Tensor out = layer(received, none);
      program_.drop(received);
      Tensor forwarded = program_.make(out.bytes, fourth_);
      program_.use(fourth_, "next stage", {&out}, {&forwarded}, 2 * unit_ns_);
      program_.drop(out);
      program_.use(third_, "send", {&forwarded}, {}, 3 * unit_ns_);
      sent.push_back(std::move(forwarded));
      if (sent.size() > 2) {
        program_.drop(sent.front());
        sent.erase(sent.begin());
      }
    }
    drop(sent);
  }
};

/// Batches that a loader copies in on its stream, told by recordStream, and activations that are
/// copied to the host, and back, on streams that are told nothing.
class Offload final : public Trainer {
 public:
  using Trainer::Trainer;

 private:
  void step() override {
    Tensors none;
    Tensor batch = made(bytes(6), second_, "load");
    Tensor in = layer(batch, none);
    program_.recordUses(batch);
    program_.drop(batch);
    for (std::size_t i = 0; i < layers_; ++i) {
      Tensor out = layer(in, none);
      program_.use(third_, "to the host", {&in}, {}, 6 * unit_ns_);
      program_.drop(in);
      in = std::move(out);
    }
    for (std::size_t i = 0; i < layers_; ++i) {
      Tensor back = made(bytes(3), fourth_, "from the host");
      Tensor out = layer(back, none);
      program_.drop(back);
      program_.drop(in);
      in = std::move(out);
    }
    program_.drop(in);
  }
};

template <class Kind>
std::size_t racesOf(int worlds, std::string_view conf = "", std::uint64_t first = 1) {
  std::size_t races = 0;
  for (int i = 0; i < worlds; ++i) {
    Kind trainer(first + std::uint64_t(i), conf);
    trainer.run(3);
    races += trainer.races();
  }
  return races;
}

constexpr int kWorlds = kSlowBuild ? 12 : 120;

}  // namespace

TEST_CASE("trainers on several streams do not race", "[pools][untold]") {
  for (const char* conf : {"", "recycle:eager", "background_thread:false", "backing:segments"}) {
    INFO(conf);
    CHECK(racesOf<Sharded>(kWorlds, conf) == 0);
    CHECK(racesOf<Buckets>(kWorlds, conf) == 0);
    CHECK(racesOf<Pipeline>(kWorlds, conf) == 0);
    CHECK(racesOf<Offload>(kWorlds, conf) == 0);
  }
}

#if defined(CISTERN_AUDIT_BUILD)

TEST_CASE("trainers race where one stream's word stands for all", "[pools][untold]") {
  broken_rules = unsigned(Rule::kUntold);
  const std::size_t found =
      racesOf<Sharded>(20) + racesOf<Buckets>(20) + racesOf<Pipeline>(20) + racesOf<Offload>(20);
  broken_rules = 0;
  CHECK(found > 0);
}

#endif

}  // namespace cistern::test

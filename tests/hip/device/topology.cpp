#include "tests/hip/device/topology.hpp"

#include <map>
#include <set>

#include <unistd.h>

#include "tests/hip/device/settings.hpp"

namespace played {
namespace {

using Files = std::map<std::string, std::string, std::less<>>;

/// "name value" lines, as the driver writes them.
class Lines {
 public:
  Lines& add(std::string_view name, std::uint64_t value) {
    text_.append(name).append(" ").append(std::to_string(value)).append("\n");
    return *this;
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

constexpr std::uint64_t kHostHeap = 0;
constexpr std::uint64_t kOpenVram = 1;
constexpr std::uint64_t kPrivateVram = 2;
constexpr std::uint64_t kPcie = 2;
constexpr std::uint64_t kFirstSimd = 0x80001000;

std::string bank(std::uint64_t heap, std::uint64_t bytes) {
  return Lines()
      .add("heap_type", heap)
      .add("size_in_bytes", bytes)
      .add("flags", 0)
      .add("width", 64)
      .add("mem_clk_max", 1000)
      .text();
}

std::string link(int from, int to) {
  return Lines()
      .add("type", kPcie)
      .add("version_major", 0)
      .add("version_minor", 0)
      .add("node_from", std::uint64_t(from))
      .add("node_to", std::uint64_t(to))
      .add("weight", 20)
      .add("min_latency", 0)
      .add("max_latency", 0)
      .add("min_bandwidth", 0)
      .add("max_bandwidth", 0)
      .add("recommended_transfer_size", 0)
      .add("flags", 1)
      .text();
}

std::string cache(int level, std::uint64_t kibibytes, std::uint64_t simd) {
  return Lines()
      .add("processor_id_low", simd)
      .add("level", std::uint64_t(level))
      .add("size", kibibytes)
      .add("cache_line_size", 64)
      .add("cache_lines_per_tag", 1)
      .add("association", 0)
      .add("latency", 0)
      .add("type", 9)
      .add("sibling_map", 1)
      .text();
}

std::string processors(int links) {
  return Lines()
      .add("cpu_cores_count", std::uint64_t(sysconf(_SC_NPROCESSORS_ONLN)))
      .add("simd_count", 0)
      .add("mem_banks_count", 1)
      .add("caches_count", 0)
      .add("io_links_count", std::uint64_t(links))
      .add("cpu_core_id_base", 0)
      .add("simd_id_base", 0)
      .add("max_engine_clk_ccompute", 3000)
      .text();
}

// The capabilities: doorbells of AQL's kind (2, at bit 12), and the events of a dGPU's driver.
constexpr std::uint64_t kCapabilities = 0x2280;

std::string gpu(int index, int links) {
  return Lines()
      .add("cpu_cores_count", 0)
      .add("simd_count", 256)
      .add("mem_banks_count", 1)
      .add("caches_count", 2)
      .add("io_links_count", std::uint64_t(links))
      .add("cpu_core_id_base", 0)
      .add("simd_id_base", kFirstSimd + 0x1000 * std::uint64_t(index))
      .add("max_waves_per_simd", 10)
      .add("lds_size_in_kb", 64)
      .add("gds_size_in_kb", 0)
      .add("num_gws", 0)
      .add("wave_front_size", 64)
      .add("array_count", 4)
      .add("simd_arrays_per_engine", 1)
      .add("cu_per_simd_array", 16)
      .add("simd_per_cu", 4)
      .add("max_slots_scratch_cu", 32)
      .add("gfx_target_version", 90000)
      .add("vendor_id", 4098)
      .add("device_id", 26751)
      .add("location_id", 768 + 256 * std::uint64_t(index))
      .add("domain", 0)
      .add("drm_render_minor", std::uint64_t(kFirstRenderNode + index))
      .add("hive_id", 0)
      .add("num_sdma_engines", 2)
      .add("num_sdma_xgmi_engines", 0)
      .add("num_sdma_queues_per_engine", 2)
      .add("num_cp_queues", 24)
      .add("max_engine_clk_fcompute", 1600)
      .add("local_mem_size", settings().vram_bytes)
      .add("fw_version", 455)
      .add("capability", kCapabilities)
      .add("debug_prop", 0)
      .add("sdma_fw_version", 430)
      .add("unique_id", std::uint64_t(index) + 1)
      .add("max_engine_clk_ccompute", 3000)
      .text();
}

std::uint64_t hostBytes() {
  return std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE));
}

/// Whether `from` reaches the memory of `to`: every GPU the host's, and all of them a GPU's if it
/// is open. A link from the processors to a GPU is how the driver says that they can write its
/// memory.
bool reaches(int to) { return to == 0 || settings().open_vram; }

void addLinks(Files& files, const std::string& folder, int node, int nodes) {
  int links = 0;
  for (int to = 0; to < nodes; ++to) {
    if (to == node || !reaches(to)) continue;
    files[folder + "/io_links/" + std::to_string(links++) + "/properties"] = link(node, to);
  }
  files[folder + "/properties"] = node == 0 ? processors(links) : gpu(node - 1, links);
}

void addNode(Files& files, int node, int nodes) {
  const std::string folder = "/nodes/" + std::to_string(node);
  files[folder + "/gpu_id"] = std::to_string(node == 0 ? 0 : gpuId(node - 1)) + "\n";
  files[folder + "/name"] = "\n";
  const std::uint64_t heap = settings().open_vram ? kOpenVram : kPrivateVram;
  files[folder + "/mem_banks/0/properties"] =
      node == 0 ? bank(kHostHeap, hostBytes()) : bank(heap, settings().vram_bytes);
  addLinks(files, folder, node, nodes);
  if (node == 0) return;
  const std::uint64_t simd = kFirstSimd + 0x1000 * std::uint64_t(node - 1);
  files[folder + "/caches/0/properties"] = cache(1, 16, simd);
  files[folder + "/caches/1/properties"] = cache(2, 4096, simd);
}

Files allFiles() {
  Files files;
  files["/generation_id"] = "1\n";
  files["/system_properties"] =
      Lines().add("platform_oem", 0).add("platform_id", 0).add("platform_rev", 0).text();
  const int nodes = settings().gpus + 1;
  for (int node = 0; node < nodes; ++node) addNode(files, node, nodes);
  return files;
}

// Never destroyed, because the runtime may read them when the process ends.
const Files& files() {
  static const Files* const all = new Files(allFiles());
  return *all;
}

}  // namespace

const std::string* topologyFile(std::string_view path) {
  const auto found = files().find(path.substr(kTopology.size()));
  return found == files().end() ? nullptr : &found->second;
}

std::optional<std::vector<std::string>> topologyFolder(std::string_view path) {
  const std::string folder = std::string(path.substr(kTopology.size())) + "/";
  std::set<std::string> names;
  for (const auto& [file, text] : files()) {
    if (!file.starts_with(folder)) continue;
    const std::size_t end = file.find('/', folder.size());
    names.insert(file.substr(folder.size(), end - folder.size()));
  }
  if (names.empty()) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace played

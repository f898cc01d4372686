// A mapped artifact: finds tensors by name. The file's format is storage-layouts, section 6.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct TensorEntry {
    std::string format;
    std::string layout;
    std::vector<std::uint64_t> shape;
    std::span<const std::uint8_t> payload;
};

class Artifact {
  public:
    // Maps a file; on failure `error` says why and `find` finds nothing.
    explicit Artifact(const char *path);
    ~Artifact();
    Artifact(const Artifact &) = delete;
    Artifact &operator=(const Artifact &) = delete;

    std::optional<TensorEntry> find(const std::string &name) const;
    std::string error;

  private:
    std::span<const std::uint8_t> bytes_;
    std::string directory_;
    std::uint64_t payload_offset_ = 0;
};

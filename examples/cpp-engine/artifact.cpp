#include "artifact.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace {
constexpr std::uint8_t magic[8] = {'N', 'I', 'N', 'F', 'E', 'R', 0, 2};
constexpr std::uint64_t header_bytes = 16;
constexpr std::uint64_t payload_alignment = 4096;

std::uint64_t load_u64(const std::uint8_t *bytes) {
    std::uint64_t value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
    return value;
}
} // namespace

Artifact::Artifact(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || fstat(file, &status) != 0) {
        error = std::string(path) + ": " + std::strerror(errno);
        if (file >= 0) close(file);
        return;
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    void *map = size == 0 ? MAP_FAILED : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (map == MAP_FAILED) {
        error = std::string(path) + ": cannot be mapped";
        return;
    }
    bytes_ = {static_cast<const std::uint8_t *>(map), size};
    if (size < header_bytes || std::memcmp(bytes_.data(), magic, sizeof magic) != 0) {
        error = std::string(path) + ": not an artifact of framing revision 2";
        return;
    }
    const std::uint64_t json_bytes = load_u64(bytes_.data() + sizeof magic);
    if (json_bytes > size - header_bytes) {
        error = std::string(path) + ": the directory is longer than the file";
        return;
    }
    directory_.assign(reinterpret_cast<const char *>(bytes_.data()) + header_bytes, json_bytes);
    payload_offset_ = (header_bytes + json_bytes + payload_alignment - 1) / payload_alignment * payload_alignment;
}

Artifact::~Artifact() {
    if (!bytes_.empty()) munmap(const_cast<std::uint8_t *>(bytes_.data()), bytes_.size());
}

std::optional<TensorEntry> Artifact::find(const std::string &name) const {
    const auto directory = nlohmann::json::parse(directory_, nullptr, false);
    if (directory.is_discarded() || !directory.contains("objects")) return std::nullopt;
    for (const auto &object : directory["objects"]) {
        if (object.value("name", "") != name || object.value("kind", "") != "tensor") continue;
        const auto offset = object.value("offset", std::uint64_t{0});
        const auto bytes = object.value("bytes", std::uint64_t{0});
        if (payload_offset_ > bytes_.size()) return std::nullopt;
        const std::uint64_t room = bytes_.size() - payload_offset_;
        if (offset > room || bytes > room - offset) return std::nullopt;
        return TensorEntry{object.value("format", ""), object.value("layout", ""),
                           object.value("shape", std::vector<std::uint64_t>{}),
                           bytes_.subspan(payload_offset_ + offset, bytes)};
    }
    return std::nullopt;
}

// The golden vectors, every case that the device has an operation for.
#include "operations.h"
#include "json.h"
#include "sha256.h"

namespace test {
namespace {

u32 format_of(const std::string& name) {
    for (u32 f = 1; f <= 9; ++f) {
        if (name == reference::name_of(f)) return f;
    }
    return 0;
}
Shape shape_of(u32 format, const json::Value& shape) {
    Shape s{format, 1, 1};
    for (size_t i = 0; i < shape.items.size(); ++i) {
        if (i + 1 < shape.items.size()) s.n *= shape.items[i].magnitude;
        else s.k = shape.items[i].magnitude;
    }
    return s;
}
u64 number(const json::Value& v, const char* name) { return v.has(name) ? v[name].magnitude : ~u64(0); }

u32 status_of(const std::string& kind) {
    static const std::map<std::string, u32> all = {
        {"zero_dimension", 11},     {"not_multiple", 12},   {"overflow", 13},
        {"payload_length", 15},     {"empty_rows", 16},     {"row_out_of_range", 17},
        {"non_finite_source", 31}, {"scale_overflow", 33}, {"invalid_scale", 35},
        {"invalid_divisor", 36},   {"invalid_code", 37},  {"zero_scale_nonzero_code", 38},
        {"padding_code_not_zero", 39}, {"padding_scale_not_zero", 40}, {"gap_not_zero", 41}};
    const auto it = all.find(kind);
    return it == all.end() ? 999 : it->second;
}
u32 fault_of(const std::string& reason) {
    static const std::map<std::string, u32> all = {
        {"nan", 1}, {"infinite", 2}, {"negative_zero", 3}, {"negative", 4}, {"zero", 5}};
    const auto it = all.find(reason);
    return it == all.end() ? 0 : it->second;
}

void expect_error(const Outcome& got, const json::Value& error, const std::string& what) {
    check(got.status == status_of(error["kind"].text),
          what + ": status " + std::to_string(got.status) + ", expected " + error["kind"].text);
    if (error.has("row")) check(got.row == number(error, "row"), what + ": row");
    if (error.has("col")) check(got.column == number(error, "col"), what + ": column");
    if (error.has("group") && !error.has("col")) check(got.group == number(error, "group"), what + ": group");
    if (error.has("offset")) check(got.offset == number(error, "offset"), what + ": offset");
    if (got.status == NINFER_CODEC_STATUS_INVALID_SCALE || got.status == NINFER_CODEC_STATUS_INVALID_DIVISOR) {
        if (error.has("reason")) check(got.fault == fault_of(error["reason"].text), what + ": reason");
    }
}

// An invalid payload: its length is refused before a launch, anything else is what validation reports.
void expect_invalid(Shape s, const Bytes& payload, const json::Value& error, const std::string& what) {
    if (error["kind"].text == "payload_length") {
        Buffer in(payload);
        Report report;
        check(ninfer_codec_cuda_validate(s.format, s.n, s.k, in.get(), payload.size(), 0, s.n, report.get(),
                                         nullptr) == NINFER_CODEC_STATUS_PAYLOAD_LENGTH,
              what + ": length");
        return;
    }
    expect_error(device_validate(s, payload, 0, s.n), error, what);
}

void expect_valid(Shape s, const Bytes& payload, const std::string& what) {
    same(device_validate(s, payload, 0, s.n), Outcome{}, what + " validate");
}

void canonical(const json::Value& file) {
    u64 host_only = 0;
    for (const json::Value& c : file["cases"].items) {
        const std::string what = "canonical_encode " + c["id"].text, dtype = c["dtype"].text;
        if (dtype == "f64") {
            ++host_only;
            continue;
        }
        const u32 type = dtype == "f32" ? reference::F32 : dtype == "bf16" ? reference::TBF16 : reference::F16;
        const Shape s = shape_of(format_of(c["format"].text), c["shape"]);
        const Bytes bytes = c["source"].bytes();
        std::vector<u64> source(s.n * s.k);
        const int width = int(reference::width_of(type));
        for (u64 i = 0; i < source.size(); ++i) source[i] = reference::get(bytes, i * width, width);
        const Result r = device_quantize(s, type, source, 0, s.n, Bytes(reference::places(s).bytes, 0xa5));
        if (c.has("error")) {
            expect_error(r.outcome, c["error"], what);
        } else {
            same(r.outcome, Outcome{}, what);
            same(r.bytes, c["payload"].bytes(), what + " payload");
        }
    }
    if (host_only) skipped(std::to_string(host_only) + " f64 encoder vectors: the device takes f32, bf16 and f16");
}

void decoded_cases(const json::Value& file, const std::string& topic, u32 only_format) {
    for (const json::Value& c : file["valid"].items) {
        const std::string what = topic + " " + c["id"].text;
        const Shape s = shape_of(only_format ? only_format : format_of(c["format"].text), c["shape"]);
        const Bytes payload = c["payload"].bytes();
        const Result r = device_decode(s, payload, Rows::range(0, s.n), reference::F32);
        same(r.outcome, Outcome{}, what);
        same(r.bytes, c["f32"].bytes(), what + " f32");
        for (u32 type : {reference::TBF16, reference::F16}) {
            const Result narrow = device_decode(s, payload, Rows::range(0, s.n), type);
            same(narrow.bytes, expected_decode(s, payload, Rows::range(0, s.n), type), what + " narrow");
        }
        expect_valid(s, payload, what);
    }
    for (const json::Value& c : file["invalid"].items) {
        const Shape s = shape_of(only_format ? only_format : format_of(c["format"].text), c["shape"]);
        expect_invalid(s, c["payload"].bytes(), c["error"], topic + " " + c["id"].text);
    }
}

void nvfp4(const json::Value& file) {
    std::map<std::string, std::pair<Shape, Bytes>> inline_payloads;
    for (const json::Value& c : file["valid"].items) {
        const std::string what = "nvfp4 " + c["id"].text;
        const Shape s = shape_of(reference::NVFP4, c["shape"]);
        const reference::Places p = reference::places(s);
        check(p.bytes == c["payload_bytes"].magnitude, what + " payload bytes");
        // From natural words, the scales through the swizzle kernel and back.
        const Bytes scales = c["scales"].bytes();
        Buffer natural(scales), plane(scales.size()), back(scales.size());
        check(ninfer_codec_cuda_swizzle_scales(s.n, s.k, natural.get(), scales.size(), plane.get(), scales.size(),
                                               nullptr) == 0, what);
        check(ninfer_codec_cuda_unswizzle_scales(s.n, s.k, plane.get(), scales.size(), back.get(), scales.size(),
                                                 nullptr) == 0, what);
        cuda(cudaDeviceSynchronize(), "swizzle");
        same(back.download(), scales, what + " swizzled and back");
        library::swizzle(s.n, s.k, scales, plane.download());
        Bytes payload = c["codes"].bytes();
        payload.resize(p.scale, 0);
        const Bytes swizzled = plane.download();
        payload.insert(payload.end(), swizzled.begin(), swizzled.end());
        payload.resize(p.bytes);
        reference::put(payload, p.divisor, 4, c["divisor"].word());
        check(sha256(payload) == c["payload_sha256"].text, what + " payload");
        if (c["payload"].kind == json::Value::string) {
            same(payload, c["payload"].bytes(), what + " payload");
            inline_payloads[c["id"].text] = {s, payload};
        }
        const Result f32 = device_decode(s, payload, Rows::range(0, s.n), reference::F32);
        const Result f64 = device_decode(s, payload, Rows::range(0, s.n), reference::F64);
        check(sha256(f32.bytes) == c["f32_sha256"].text, what + " f32");
        check(sha256(f64.bytes) == c["f64_sha256"].text, what + " f64");
        for (const json::Value& sample : c["samples"].items) {
            const u64 at = sample["n"].magnitude * s.k + sample["k"].magnitude;
            check(reference::get(f32.bytes, at * 4, 4) == sample["f32"].word(), what + " sample f32");
            check(reference::get(f64.bytes, at * 8, 8) == sample["f64"].word(), what + " sample f64");
        }
        expect_valid(s, payload, what);
    }
    for (const json::Value& c : file["invalid"].items) {
        auto [s, payload] = inline_payloads.at(c["base"].text);
        for (const json::Value& patch : c["patches"].items) {
            const Bytes hex = patch["hex"].bytes();
            for (size_t i = 0; i < hex.size(); ++i) payload[patch["offset"].magnitude + i] = hex[i];
        }
        if (c["resize_to"].kind == json::Value::integer) payload.resize(c["resize_to"].magnitude, 0);
        expect_invalid(s, payload, c["error"], "nvfp4 " + c["id"].text);
        const std::string kind = c["error"]["kind"].text;
        if (kind == "invalid_scale" || kind == "invalid_divisor") {
            const Result r = device_decode(s, payload, Rows::range(0, s.n), reference::F32);
            expect_error(r.outcome, c["error"], "nvfp4 decode " + c["id"].text);
            same(r.bytes, Bytes(r.bytes.size(), 0xa5), "nvfp4 refused decode writes nothing");
        }
    }
}

void direct(const json::Value& file) {
    for (const json::Value& c : file["valid"].items) {
        const Shape s = shape_of(format_of(c["format"].text), c["shape"]);
        const Bytes payload = c["payload"].bytes();
        const std::string what = "direct " + c["id"].text;
        expect_valid(s, payload, what);
        same(device_gather(s, payload, Rows::range(0, s.n)).bytes, payload, what + " slice");
        if (s.format == reference::BF16) {
            same(device_decode(s, payload, Rows::range(0, s.n), reference::TBF16).bytes, payload, what + " words");
            const Rows rows = Rows::range(0, s.n);
            same(device_decode(s, payload, rows, reference::F32).bytes, expected_decode(s, payload, rows, reference::F32), what);
        }
        if (s.format == reference::FP32) {
            same(device_decode(s, payload, Rows::range(0, s.n), reference::F32).bytes, payload, what + " words");
        }
    }
    for (const json::Value& c : file["invalid"].items) {
        const Shape s = shape_of(format_of(c["format"].text), c["shape"]);
        expect_invalid(s, c["payload"].bytes(), c["error"], "direct " + c["id"].text);
    }
}

void geometry(const json::Value& file) {
    for (const json::Value& c : file["cases"].items) {
        const u32 format = format_of(c["format"].text);
        const bool has_error = c.has("error");
        const std::string kind = has_error ? c["error"]["kind"].text : "";
        // The launchers take rows and columns and imply the layout.
        if (kind == "unsupported_pair" || kind == "wrong_rank") continue;
        u64 n = 1, k = 1;
        bool flat = true;
        const auto& dims = c["shape"].items;
        for (size_t i = 0; i < dims.size(); ++i) {
            if (i + 1 == dims.size()) k = dims[i].magnitude;
            else if (__builtin_mul_overflow(n, dims[i].magnitude, &n)) flat = false;
        }
        if (!flat) continue;
        uint64_t bytes = 0;
        const u32 status = ninfer_codec_cuda_payload_bytes(format, n, k, &bytes);
        const std::string what = "geometry " + c["id"].text;
        if (has_error) check(status == status_of(kind), what + ": status " + std::to_string(status));
        else check(status == 0 && bytes == c["geometry"]["payload_bytes"].magnitude, what);
    }
}

void rows(const json::Value& file) {
    std::map<std::string, std::pair<Shape, Bytes>> parents;
    for (const json::Value& p : file["parents"].items) {
        parents[p["id"].text] = {shape_of(format_of(p["format"].text), p["shape"]), p["payload"].bytes()};
    }
    for (const json::Value& c : file["cases"].items) {
        if (c["op"].text == "view") continue;
        const auto& [s, payload] = parents.at(c["parent"].text);
        const std::string what = "rows " + c["id"].text;
        std::vector<u64> list;
        const bool slice = c["op"].text == "slice";
        if (!slice) {
            for (const json::Value& r : c["rows"].items) list.push_back(r.magnitude);
        }
        if (!c.has("error")) {
            const Rows r = slice ? Rows::range(c["begin"].magnitude, c["count"].magnitude) : Rows::of(list);
            const Result got = device_gather(s, payload, r);
            same(got.outcome, Outcome{}, what);
            same(got.bytes, c["payload"].bytes(), what);
            continue;
        }
        const u64 count = slice ? c["count"].magnitude : list.size();
        Buffer in(payload), out(4 << 20), device_list(Rows::of(list).bytes());
        Report report;
        uint64_t bytes = 0;
        ninfer_codec_cuda_payload_bytes(s.format, count, s.k, &bytes);
        u32 status = slice ? ninfer_codec_cuda_slice(s.format, s.n, s.k, in.get(), payload.size(),
                                                     c["begin"].magnitude, count, out.get(), bytes, report.get(),
                                                     nullptr)
                           : ninfer_codec_cuda_gather(s.format, s.n, s.k, in.get(), payload.size(),
                                                      reinterpret_cast<const uint64_t*>(device_list.get()), count,
                                                      out.get(), bytes, report.get(), nullptr);
        if (status == 0) status = report.outcome().status;
        check(status == status_of(c["error"]["kind"].text), what + ": status " + std::to_string(status));
        same(out.download(), Bytes(out.size(), 0xa5), what + " writes nothing");
    }
}

// Every legal and illegal scale and divisor word named by the vectors, through a one-group matrix.
void words(const json::Value& file) {
    const auto probe = [](Shape s, u64 word, bool divisor, const json::Value& c, const std::string& what) {
        Bytes payload(reference::places(s).bytes, 0);
        const reference::Places p = reference::places(s);
        if (s.format == reference::NVFP4) reference::put(payload, p.divisor, 4, 0x3f800000);
        reference::put(payload, divisor ? p.divisor : p.scale, divisor ? 4 : reference::scale_bytes(s.format), word);
        const Outcome o = device_decode(s, payload, Rows::range(0, 1), reference::F32).outcome;
        check((o.status == 0) == (c["valid"].magnitude == 1), what);
        if (o.status) check(o.fault == fault_of(c["reason"].text), what + " reason");
    };
    const json::Value& validity = file["scale_validity"];
    for (const auto& c : validity["f16"].items) probe({reference::Q4, 1, 64}, c["word"].word(), false, c, "f16 scale");
    for (const auto& c : validity["bf16"].items) probe({reference::FP8, 1, 16}, c["word"].word(), false, c, "bf16 scale");
    for (const auto& c : validity["e4m3fn"].items) {
        probe({reference::NVFP4, 128, 64}, c["word"].word(), false, c, "e4m3fn scale");
    }
    for (const auto& c : validity["f32_divisor"].items) {
        probe({reference::NVFP4, 128, 64}, c["word"].word(), true, c, "divisor");
    }
}

}  // namespace

void run_vectors(const std::string& folder) {
    const auto file = [&](const char* topic) { return json::read_file(folder + "/" + topic + ".json"); };
    { Part part("canonical"); canonical(file("canonical_encode")); }
    { Part part("grouped"); decoded_cases(file("grouped_decode"), "grouped_decode", 0); }
    { Part part("fp8_row"); decoded_cases(file("fp8_row"), "fp8_row", reference::FP8); }
    { Part part("nvfp4"); nvfp4(file("nvfp4")); }
    { Part part("direct"); direct(file("direct")); }
    { Part part("geometry"); geometry(file("geometry")); }
    { Part part("rows"); rows(file("rows")); }
    { Part part("words"); words(file("words")); }
}

}  // namespace test

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use rnet_core::{FieldType, PlainHeader, PlainType};

use super::header::{common_header, header_of};
use super::image::Image;
use super::*;
use crate::msgs::{foxglove, timestamp_from_ns};

mod to_foxglove;

/// The rows of each table of the page, as cells, by the heading above it.
fn tables() -> BTreeMap<String, Vec<Vec<String>>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/plain-messages.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let mut tables: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut heading = String::new();
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("### ") {
            heading = text.replace('`', "");
        } else if let Some(row) = line.strip_prefix("| ") {
            let cells = row.trim_end_matches('|').split('|').map(|c| c.trim().replace('`', ""));
            tables.entry(heading.clone()).or_default().push(cells.collect());
        }
    }
    tables
}

/// A field's type in the format of the page.
fn on_the_page(ty: &FieldType, is_text: bool) -> String {
    match ty {
        FieldType::Prim(prim) => prim.name().to_owned(),
        FieldType::Array { .. } if is_text => "text".to_owned(),
        FieldType::Array { of, len } if matches!(**of, FieldType::Struct(_)) => {
            format!("{len} fields")
        }
        FieldType::Array { of, len } => format!("{len} {of}"),
        FieldType::Struct(plain) => plain.name.clone(),
    }
}

fn same_as_the_page(tables: &BTreeMap<String, Vec<Vec<String>>>, plain: &PlainType) {
    plain.validate().unwrap();
    let heading = format!("Struct {}, {} bytes", plain.name, plain.size);
    let rows = tables.get(&heading).unwrap_or_else(|| panic!("the page has no {heading}"));
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| row[0] != "offset").collect();
    assert_eq!(rows.len(), plain.fields.len(), "{heading}");
    for (row, field) in rows.iter().zip(&plain.fields) {
        let at = (field.offset.to_string(), field.ty.size().to_string());
        assert_eq!((&row[0], &row[1]), (&at.0, &at.1), "{heading}: {}", field.name);
        let name = if field.is_reserved() { "–" } else { &field.name };
        assert_eq!(row[2], name, "{heading}");
        if !field.is_reserved() {
            let text = ["frame_id", "encoding", "name"].contains(&name);
            assert_eq!(row[3], on_the_page(&field.ty, text), "{heading}: {name}");
        }
    }
}

#[test]
fn structs_match_page() {
    let tables = tables();
    for header in [Image::header_type(), PointCloud::header_type(), Tensor::header_type()] {
        assert!(header.tail);
        same_as_the_page(&tables, &header);
    }
    same_as_the_page(&tables, &<PointField as rnet_core::Plain>::plain_type());
}

#[test]
fn field_meanings_match_page() {
    let tables = tables();
    for described in HeaderDescription::all() {
        let PlainType { name, size, .. } = &described.plain;
        let inner =
            (name == "rnet.msgs.PointCloud").then_some(("Struct Field, 40 bytes", "fields."));
        let own = format!("Struct {name}, {size} bytes");
        let mut rows: Vec<(String, &str, &str)> = Vec::new();
        for (heading, before) in std::iter::once((own.as_str(), "")).chain(inner) {
            let said = tables[heading].iter().filter(|row| row[0] != "offset" && row[2] != "–");
            rows.extend(said.map(|row| (format!("{before}{}", row[2]), &*row[3], &*row[4])));
        }
        let fields: Vec<(String, &str)> =
            described.fields.iter().map(|f| (f.path.to_owned(), f.meaning)).collect();
        let page: Vec<(String, &str)> =
            rows.iter().map(|(path, _, meaning)| (path.clone(), *meaning)).collect();
        assert_eq!(fields, page, "{name}");
        for (field, (_, ty, _)) in described.fields.iter().zip(&rows) {
            assert_eq!(field.form == FieldForm::Text, *ty == "text", "{name}: {}", field.path);
        }
        assert!(HeaderDescription::find(&described.plain).is_some());
        let mut other = described.plain.clone();
        other.fields[0].name = "time".to_owned();
        assert!(HeaderDescription::find(&other).is_none());
    }
}

#[test]
fn a_description_reads_headers_of_any_length() {
    let image = Image::new(4, 2, "mono8").unwrap().with_timestamp_ns(7);
    let mut message = image.header_bytes().to_vec();
    message.extend([5; 8]);
    let described = HeaderDescription::find(&Image::header_type()).unwrap();
    for len in [0, 8, 192, 200] {
        let mut header = vec![9; len];
        assert_eq!(described.read(&message, &mut header).unwrap(), 192..200);
        let expected: Vec<u8> = message[..192].iter().copied().chain([0; 8]).take(len).collect();
        assert_eq!(header, expected);
    }
    message.pop();
    let error = described.read(&message, &mut []).unwrap_err().to_string();
    assert!(error.contains("data_len"), "{error}");
}

#[test]
fn encodings_match_page() {
    let tables = tables();
    let rows = &tables["A view of an image"][1..];
    let mut seen = 0;
    for row in rows.iter().filter(|row| !row[0].starts_with("encoding")) {
        let bytes = match row[1].as_str() {
            "u8" => 1,
            "u16" => 2,
            "f32" => 4,
            other => panic!("{other}"),
        };
        for encoding in row[0].split(", ") {
            let image = Image::new(10, 1, encoding).unwrap();
            let channels: u32 = row[2].parse().unwrap();
            assert_eq!(image.row_stride(), 10 * channels * bytes, "{encoding}");
            seen += 1;
        }
    }
    assert_eq!(seen, 18);
}

fn message<T: DataHeader>(header: &T, data: &[u8]) -> Vec<u8> {
    [rnet_shm::plain::bytes_of_header(header), data].concat()
}

fn image() -> Vec<u8> {
    let image = Image::with_rows(3, 2, "mono8", 4).unwrap().with_frame_id("camera").unwrap();
    message(&image.with_timestamp_ns(-1), &[1, 2, 3, 0, 4, 5, 6, 0])
}

const XYZ: [(&str, NumberType); 3] =
    [("x", NumberType::F32), ("y", NumberType::F32), ("z", NumberType::F32)];

fn cloud() -> Vec<u8> {
    let cloud = PointCloud::new(2, 2, &XYZ).unwrap().with_frame_id("lidar").unwrap();
    let numbers = (0..12).flat_map(|n| (n as f32).to_le_bytes());
    message(&cloud, &numbers.collect::<Vec<_>>())
}

fn tensor() -> Vec<u8> {
    let tensor = Tensor::new(DType::of::<i16>(), &[2, 3]).unwrap();
    message(&tensor, &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 255, 255])
}

#[test]
fn view_shows_data_in_place() {
    let bytes = image();
    let (header, data) = read::<Image>(&bytes).unwrap();
    assert_eq!((header.frame_id(), header.timestamp_ns()), ("camera", -1));
    let view = header.with_data(data);
    assert_eq!(view.row(1).unwrap().as_ptr(), bytes[196..].as_ptr());
    assert_eq!(view.rows().collect::<Vec<_>>(), [[1, 2, 3], [4, 5, 6]]);
    let pixels = view.pixels::<u8>().unwrap();
    assert_eq!((pixels.shape(), pixels.at(2, 1)), ([2, 3, 1], Some(&[6][..])));
    assert_eq!((pixels.at(3, 1), pixels.at(0, 2), view.row(2)), (None, None, None));
    assert!(view.pixels::<u16>().is_err_and(|e| e.to_string().contains("\"mono8\" are U8")));

    let bytes = cloud();
    let (header, data) = read::<PointCloud>(&bytes).unwrap();
    let view = header.with_data(data);
    assert_eq!(view.points().count(), 4);
    assert_eq!(view.values::<f32>("y").unwrap().collect::<Vec<_>>(), [1.0, 4.0, 7.0, 10.0]);
    assert_eq!(view.xyz().unwrap().last(), Some([9.0, 10.0, 11.0]));
    let why = |e: rnet_core::Result<usize>| e.unwrap_err().to_string();
    assert!(why(view.values::<f32>("w").map(Iterator::count)).contains("it has x, y, z"));
    assert!(why(view.values::<u32>("x").map(Iterator::count)).contains("F32"));

    let bytes = tensor();
    let (header, data) = read::<Tensor>(&bytes).unwrap();
    let view = header.with_data(data);
    assert_eq!(view.as_slice::<i16>().unwrap(), [1, 2, 3, 4, 5, -1]);
    assert_eq!(view.at::<i16>(&[1, 2]).unwrap(), Some(-1));
    assert_eq!((view.at::<i16>(&[2, 0]).unwrap(), view.at::<i16>(&[0]).is_err()), (None, true));
    assert!(view.as_slice::<u16>().is_err());
}

#[test]
fn rows_may_have_gaps_and_wide_pixels_need_alignment() {
    let image = Image::with_rows(2, 2, "mono16", 6).unwrap();
    let words: Vec<u64> = vec![0x0004_0000_0002_0001, 0x0006_0005];
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let aligned = bytes.as_ptr().align_offset(2);
    let data = &bytes[aligned..];
    let view = image.with_data(&data[..12]);
    let pixels = view.pixels::<u16>().unwrap();
    assert_eq!((pixels.row(0), pixels.row(1)), (Some(&[1, 2][..]), Some(&[4, 5][..])));
    assert!(image.with_data(&data[1..13]).pixels::<u16>().is_err());
    let odd = Image::with_rows(2, 2, "mono16", 5).unwrap();
    assert!(odd.with_data(&data[..10]).pixels::<u16>().is_err());
    // For an unknown encoding, all bytes of a row.
    let jpeg = Image::with_rows(100, 2, "jpeg2000", 6).unwrap();
    assert_eq!(jpeg.with_data(&data[..12]).pixels::<u8>().unwrap().shape(), [2, 6, 1]);
}

#[test]
fn tensor_may_repeat_elements_and_have_gaps() {
    let repeated = Tensor::with_strides(DType::of::<u8>(), &[1 << 40, 2], &[0, 1]).unwrap();
    let view = repeated.with_data(&[7, 8]);
    assert_eq!(view.at::<u8>(&[(1 << 40) - 1, 1]).unwrap(), Some(8));
    assert!(view.as_slice::<u8>().is_err());
    let apart = Tensor::with_strides(DType::of::<u8>(), &[2, 2], &[4, 2]).unwrap();
    assert_eq!(apart.data_len_bytes(), 7);
    assert_eq!(apart.with_data(&[1, 0, 2, 0, 3, 0, 4]).at::<u8>(&[1, 1]).unwrap(), Some(4));
    let empty = Tensor::new(DType::BF16, &[3, 0]).unwrap();
    assert_eq!((empty.data_len_bytes(), empty.strides()), (0, &[2, 2][..]));
    let single = Tensor::new(DType::COMPLEX128, &[]).unwrap();
    assert_eq!(single.data_len_bytes(), 16);
}

fn refused<T: std::fmt::Debug>(made: rnet_core::Result<T>, word: &str) {
    let error = made.unwrap_err();
    assert_eq!(error.code(), "bad_value");
    assert!(error.to_string().contains(word), "{word:?} is not in {error}");
}

#[test]
fn constructors_reject_invalid_headers() {
    let long = "f".repeat(65);
    let image = Image::new(2, 2, "mono8").unwrap();
    assert_eq!(image.with_frame_id(&long[1..]).unwrap().frame_id(), &long[1..]);
    refused(image.with_frame_id(&long), "65 bytes; at most 64");
    refused(image.with_frame_id("a\0b"), "contains a zero byte");
    refused(Image::new(2, 2, "h264"), "the pixel size of encoding");
    refused(Image::with_rows(2, 2, &long, 2), "encoding");
    refused(Image::with_rows(3, 2, "rgb8", 8), "the pixels of a row have 9");
    refused(Image::new(u32::MAX, 1, "rgb8"), "a row of");
    refused(Image::new(1 << 15, 1 << 15, "mono8"), "at most");
    Image::new((1 << 15) - 1, 1 << 15, "mono8").unwrap();

    refused(PointCloud::new(1, 1, &[]), "0 fields");
    refused(PointCloud::new(1, 1, &[("x", NumberType::F32); 2]), "two fields are named \"x\"");
    refused(PointCloud::new(1, 1, &[(&long, NumberType::U8)]), "at most 32");
    refused(PointCloud::new(1, 1, &[("", NumberType::U8)]), "no name");
    let x = PointField::new("x", 1, NumberType::F64).unwrap();
    refused(PointCloud::with_layout(1, 1, &[x], 8), "does not lie within point_stride 8");
    refused(PointCloud::with_layout(1, 1, &[x; 17], 9), "17 fields");
    refused(PointCloud::new(1 << 30, 1, &XYZ), "use more rows");
    refused(PointCloud::new(1 << 20, 1 << 10, &XYZ), "at most");

    refused(Tensor::new(DType { code: 3, bits: 64 }, &[1]), "which is not supported");
    refused(Tensor::new(DType { code: 2, bits: 12 }, &[1]), "which is not supported");
    refused(Tensor::new(DType::of::<u8>(), &[1; 9]), "9 dimensions");
    refused(Tensor::with_strides(DType::of::<u8>(), &[1, 1], &[1]), "1 strides");
    refused(Tensor::new(DType::of::<u8>(), &[usize::MAX]), "exceeds");
    refused(Tensor::new(DType::of::<f64>(), &[1 << 40]), "at most");
    refused(Tensor::new(DType::of::<f64>(), &[1 << 60; 8]), "exceeds");
}

/// Checks that a message with other bytes at an offset of its header is rejected with these words.
fn corrupt<T: DataHeader + std::fmt::Debug>(message: &[u8], at: usize, bytes: &[u8], words: &str) {
    read::<T>(message).expect("it was right before");
    let mut message = message.to_vec();
    message[at..at + bytes.len()].copy_from_slice(bytes);
    refused(read::<T>(&message), words);
}

#[test]
fn reader_rejects_invalid_headers() {
    refused(read::<Image>(&image()[..191]), "191 bytes, but the header has 192");
    refused(read::<Image>(&image()[..199]), "data_len 8 do not add up to the 199 bytes");
    let offset = |n: u64| n.to_le_bytes();
    corrupt::<Image>(&image(), 8, &offset(193), "data_offset is 193");
    corrupt::<Image>(&image(), 8, &offset(128), "data_offset is 128");
    corrupt::<Image>(&image(), 8, &offset(256), "data_offset 256 and data_len 8");
    corrupt::<Image>(&image(), 16, &offset(u64::MAX - 100), "data_len 18446744073709551515");
    corrupt::<Image>(&image(), 32, &[0xff], "frame_id is not UTF-8 from byte 0");
    corrupt::<Image>(&image(), 35, &[0], "frame_id continues after a zero byte");
    corrupt::<Image>(&image(), 112, &[0xc3], "encoding is not UTF-8");
    corrupt::<Image>(&image(), 96, &5_u32.to_le_bytes(), "row_stride is 4");
    corrupt::<Image>(&image(), 100, &3_u32.to_le_bytes(), "3 rows end 11 bytes");
    corrupt::<Image>(&image(), 104, &[255; 4], "at most 1073741824");
    corrupt::<Image>(&image(), 104, &[9, 0, 0, 0], "2 rows end 12 bytes");
    // A header without data that would be a gigabyte as a RawImage.
    let nothing = message(&Image::new(0, 1, "mono8").unwrap(), &[]);
    corrupt::<Image>(&nothing, 104, &(1_u32 << 30).to_le_bytes(), "data_len is 0: less than one");
    let one = message(&Image::new(8, 1, "mono8").unwrap(), &[0; 8]);
    corrupt::<Image>(&one, 104, &[9, 0, 0, 0], "row_stride is 9, but data_len is 8");

    let u32 = |n: u32| n.to_le_bytes();
    corrupt::<PointCloud>(&cloud(), 112, &u32(0), "field_count is 0");
    corrupt::<PointCloud>(&cloud(), 112, &u32(17), "field_count is 17");
    corrupt::<PointCloud>(&cloud(), 112, &u32(4), "field 3 has no name");
    corrupt::<PointCloud>(&cloud(), 192, b"y", "two fields are named \"y\"");
    corrupt::<PointCloud>(&cloud(), 192, b"y\0z", "continues after a zero byte");
    corrupt::<PointCloud>(&cloud(), 224, &u32(9), "\"x\" at 9 does not lie within");
    corrupt::<PointCloud>(&cloud(), 224, &[255; 4], "does not lie within");
    corrupt::<PointCloud>(&cloud(), 228, &u32(9), "has type 9");
    corrupt::<PointCloud>(&cloud(), 108, &u32(23), "row_stride is 23");
    corrupt::<PointCloud>(&cloud(), 108, &u32(25), "2 rows end 49 bytes");
    corrupt::<PointCloud>(&cloud(), 100, &[255; 4], "data_len is 48");

    corrupt::<Tensor>(&tensor(), 96, &[7], "code 7");
    corrupt::<Tensor>(&tensor(), 97, &[12], "12 bits");
    corrupt::<Tensor>(&tensor(), 98, &[2], "2 lanes");
    corrupt::<Tensor>(&tensor(), 100, &u32(9), "ndim is 9");
    corrupt::<Tensor>(&tensor(), 104, &(-1_i64).to_le_bytes(), "shape has -1");
    corrupt::<Tensor>(&tensor(), 168, &(-6_i64).to_le_bytes(), "strides have -6");
    corrupt::<Tensor>(&tensor(), 168, &7_i64.to_le_bytes(), "ends 13 bytes");
    // Eight products whose sum is 2^128, which is 0 in 128 bits.
    let (long, short) = (3_i64 << 61, 1_i64 << 61);
    let shape = [[long + 1; 7].as_slice(), &[short + 1]].concat();
    let strides = [[long; 7].as_slice(), &[short]].concat();
    let sums = [shape, strides].concat().iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    corrupt::<Tensor>(&tensor(), 100, &[&u32(8)[..], &sums].concat(), "data_len is 12");
}

/// [`Image`] in a later version, with 64 more bytes.
#[derive(Clone, Copy, PartialEq, Debug, crate::Plain)]
#[plain(name = "rnet.msgs.Image", tail)]
#[repr(C)]
struct Later {
    timestamp_ns: i64,
    data_offset: u64,
    data_len: u64,
    _reserved0: u64,
    frame_id: [u8; 64],
    width: u32,
    height: u32,
    row_stride: u32,
    exposure_us: u32,
    encoding: [u8; 32],
    _reserved2: [u8; 48],
    gain: [f64; 8],
}

struct LaterView<'a> {
    header: &'a Later,
    data: &'a [u8],
}

impl Later {
    fn check_own(&self) -> Result<(), String> {
        Ok(())
    }
}

mod later {
    use super::super::header;
    use super::{Later, LaterView, common_header};
    common_header!(Later, LaterView, 192);
}

#[test]
fn headers_may_grow() {
    let types = |a: PlainType, b: PlainType| {
        let notes = rnet_core::types_compatible(&a.into(), &b.into()).unwrap();
        notes.iter().map(|note| note.rule).collect::<Vec<_>>()
    };
    let (old, new) = (Image::header_type(), Later::header_type());
    let forth = types(old.clone(), new.clone());
    assert_eq!(forth, ["plain.reserved_used", "plain.appended_by_subscriber"]);
    assert_eq!(types(new, old), ["plain.passed_over", "plain.appended_by_publisher"]);

    // A new reader of an old message, whose data must not be read as fields.
    let mut bytes = image();
    bytes[16..24].copy_from_slice(&100_u64.to_le_bytes());
    bytes.resize(292, 9);
    let later = header_of::<Later>(&bytes).unwrap();
    assert_eq!((later.width, later.exposure_us, later.gain), (3, 0, [0.0; 8]));
    assert_eq!(later.data_range(), 192..292);

    // An old reader of a new message.
    let new = Later { data_offset: 256, data_len: 8, exposure_us: 5, gain: [1.0; 8], ..later };
    let (header, data) = (new, [1, 2, 3, 4, 5, 6, 7, 8]);
    let bytes = message(&header, &data);
    let (image, data) = read::<Image>(&bytes).unwrap();
    assert_eq!(image.with_data(data).row(1), Some(&[5, 6, 7][..]));
    assert_eq!(header_of::<Later>(&bytes), Ok(new));
    assert_eq!((new.data_len_bytes(), new.with_data(data).header().gain[7]), (8, 1.0));
    assert_eq!(new.with_data(data).data().len(), new.header_bytes().len() / 32);
    let renamed = new.with_frame_id("x").unwrap().with_timestamp_ns(2);
    assert_eq!((renamed.frame_id(), renamed.timestamp_ns()), ("x", 2));
}

/// Accesses everything that a view shows.
fn access<T: DataHeader>(bytes: &[u8], access: impl FnOnce(T::View<'_>)) {
    if let Ok((header, data)) = read::<T>(bytes) {
        access(header.with_data(data));
    }
}

fn access_image(view: ImageView<'_>) {
    let inside = |row: &[u8]| assert!(view.data().as_ptr_range().contains(&row.as_ptr()));
    view.rows().take(100).filter(|row| !row.is_empty()).for_each(inside);
    let rows = view.header().height();
    assert_eq!(view.rows().take(100).count(), rows.min(100) as usize);
    let _ = view.pixels::<u8>().map(|p| p.at(usize::MAX, 0).or(p.at(0, rows as usize)));
    let _ = view.pixels::<u16>().map(|p| p.row(0).map(<[u16]>::len));
    if view.header().height().saturating_mul(view.header().row_stride()) < 1 << 20 {
        let image = view.to_foxglove();
        let back = Image::from_foxglove(&image).unwrap();
        assert_eq!(back.with_data(&image.data).to_foxglove(), image);
    }
}

fn access_cloud(view: PointCloudView<'_>) {
    let points = u64::from(view.header().width()) * u64::from(view.header().height());
    assert_eq!(view.points().take(1000).count() as u64, points.min(1000));
    for field in view.header().fields() {
        let _ = view.values::<f32>(field.name()).map(|values| values.take(1000).count());
        let _ = view.values::<u8>(field.name()).map(|values| values.take(1000).count());
    }
    let _ = view.xyz().map(|points| points.take(1000).count());
    let cloud = view.to_foxglove();
    assert!(cloud.data.len() <= view.data().len());
    PointCloud::from_foxglove(&cloud).unwrap();
}

fn access_tensor(view: TensorView<'_>) {
    let last: Vec<usize> =
        view.header().shape().iter().map(|n| (*n as usize).wrapping_sub(1)).collect();
    if view.header().dtype() == DType::of::<i16>() {
        let empty = view.header().shape().contains(&0);
        assert_eq!(view.at::<i16>(&last).unwrap().is_some(), !empty);
        let _ = view.as_slice::<i16>().map(<[i16]>::len);
    }
    let _ = view.as_slice::<u8>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn views_of_arbitrary_headers_stay_within_data(
        which in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u64>(), 0_u64..20, Just(u64::MAX), Just(i64::MAX as u64), (0_u32..64).prop_map(|n| 1 << n)
        ], 1_usize..9), 1..4),
        cut in 0_usize..3,
    ) {
        let mut bytes = [image(), cloud(), tensor()][which].clone();
        let header = [192, 832, 256][which];
        for (at, value, len) in changes {
            // At the start of a field, not in the data.
            let at = at.index(header / 4) * 4;
            let len = len.min(header - at);
            bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
        bytes.truncate(bytes.len() - cut / 2);
        match which {
            0 => access::<Image>(&bytes, access_image),
            1 => access::<PointCloud>(&bytes, access_cloud),
            _ => access::<Tensor>(&bytes, access_tensor),
        }
    }
}

var e=`trunkline.draft`,t=`name = "new experiment"
duration = "30 s"
repetitions = 3

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }     # 80 B every 10 ms
`;function n(){try{let t=JSON.parse(localStorage.getItem(e)??`null`);return t&&typeof t.text==`string`&&typeof t.name==`string`?{text:t.text,name:t.name}:void 0}catch{return}}function r(t){try{localStorage.setItem(e,JSON.stringify(t))}catch{}}function i(e,t){let n=URL.createObjectURL(new Blob([e],{type:`application/toml`})),r=document.createElement(`a`);r.href=n,r.download=t,r.click(),setTimeout(()=>URL.revokeObjectURL(n),1e4)}async function a(e){if(e.size>2e6)throw Error(`${e.name} is too large for an experiment file.`);let t=await e.text();if(t.includes(`\0`))throw Error(`${e.name} is not a text.`);return{text:t.replaceAll(`\r
`,`
`),name:e.name}}export{a,n as i,i as n,r,t};